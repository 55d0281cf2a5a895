#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "portfolio.hpp"
#include "rondo/bounds/bounds.hpp"
#include "rondo/pipeline/registry.hpp"
#include "rondo/pipeline/synthesize.hpp"

namespace rondo {

/// Whether the engine heeds little memory of GPUs for what they only pass on, or other starts may be given to
/// what it makes.
bool heeds_relay_memory(const EngineInfo& engine);

/// The engines that are tried on a problem, each prepared when it is first needed.
class EngineRunner {
 public:
  /// Collective where tools.on_all_ranks: all engines are prepared at once, by all ranks together.
  /// `which`: of the engines that `auto` tries, those to leave in. `kept`: in place of kept_engine(problem).
  EngineRunner(
      const Problem& problem, const Bounds& bounds, const Toolbox& tools, const RunContext& context,
      const std::function<bool(const EngineInfo&)>& which = [](const EngineInfo&) { return true; },
      std::optional<EngineInfo> kept = std::nullopt);

  /// The one asked for, or those that are applicable; and what gives the kept schedule, where there is one.
  const std::vector<EngineInfo>& engines() const { return engines_; }
  const EngineInfo& engine_of(const Candidate& candidate) const { return engines_[candidate.engine]; }

  /// One number a candidate, the same for those that begin alike (EngineInfo::begins_with).
  std::vector<std::size_t> kin_of(const std::vector<Candidate>& batch) const;

  /// One more engine, and its candidate in the fewest chunks.
  Candidate add(const std::string& engine);

  /// `until_s`: by the run's clock; the engine may then end without a schedule. `fold`: the schedule may be
  /// folded.
  EngineResult run(const Candidate& candidate, std::optional<double> until_s, bool fold = false);
  /// What a candidate has found before, to the end, whether or not a signal has come since.
  Schedule rerun(const Candidate& candidate);
  /// The same, perhaps folded.
  EngineResult rerun_folded(const Candidate& candidate);

  /// Engine, policy and seed: "list/rarest/3".
  std::string label(const Candidate& candidate) const;

 private:
  EngineResult run(const Candidate& candidate, EngineOptions options);
  void prepare_all();

  const Problem& problem_;
  const Toolbox& tools_;
  const RunContext& context_;
  const Instance instance_;
  const bool is_limited_;  ///< GPUs have little memory for what they only pass on
  EngineOptions options_;
  std::vector<EngineInfo> engines_;
  std::vector<PreparedEngine> prepared_;
};

}  // namespace rondo
