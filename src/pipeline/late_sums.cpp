#include "late_sums.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "explore.hpp"
#include "rondo/bounds/bounds.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/interleaving.hpp"
#include "rondo/core/late_sums.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/core/version.hpp"
#include "rondo/pipeline/registry.hpp"
#include "shared_bounds.hpp"
#include "summed_at_latest.hpp"
#include "tenants.hpp"
#include "time_shares.hpp"

namespace rondo {
namespace {

class LateSums {
 public:
  LateSums(const Problem& problem, const RunContext& context) : problem_(problem), context_(context) {}

  SynthesisResult run() {
    const Stopwatch clock;
    const Bounds bounds = shared_bounds(problem_, prepare_toolbox(problem_.options, context_), context_);
    const double bounds_s = clock.seconds();
    const std::vector<std::string> engines = engines_to_try();
    std::size_t left = engines.size() + 1;
    for (const std::string& engine : engines) try_engine(engine, left--);
    if (engines.size() > 1) try_at_latest(bounds.best().us);
    if (!best_) {
      if (first_error_) throw *first_error_;
      throw Error(ExitCode::unavailable,
                  "no schedule of these sums allows for parts that come late; leave the ready times out");
    }
    SynthesisResult result = std::move(*best_);
    result.proven.lower_bound = bounds.best();
    result.gap = result.proven.schedule.finish_us / bounds.best().us - 1;
    result.candidates = std::move(candidates_);
    result.remarks.insert(result.remarks.end(), faults_.begin(), faults_.end());
    result.remarks.insert(result.remarks.end(), bounds.remarks.begin(), bounds.remarks.end());
    result.wall_parts_s = {{"bounds", bounds_s},
                           {"search", clock.seconds() - bounds_s},
                           {"checkpoints", context_.checkpoints().seconds()}};
    return result;
  }

 private:
  std::vector<std::string> engines_to_try() const {
    std::vector<std::string> names{problem_.options.engine};
    if (names.front() != "auto" || problem_.demand.kind() != DemandKind::all_reduction) return names;
    for (const EngineInfo& engine : engine_registry()) {
      if (engine.combines && !engine.answers && !engine.works_in_rounds) names.push_back(engine.name);
    }
    return names;
  }

  void try_engine(const std::string& name, std::size_t left) {
    Problem problem = on_time(problem_);
    problem.options.engine = name;
    problem.options.time_limit_s = time_limit_of_part(problem_.options, context_, left);
    try {
      const Checkpoints::Prefix names(context_.checkpoints(), name + "-");
      SynthesisResult found = synthesize_as_one(problem, context_);
      const Demand demand = with_late_sums(found.proven.demand, problem_.demand);
      for (const bool in_order : {true, false}) offer_retimed(found, demand, in_order);
      offer_later(found, demand);
    } catch (const Error& error) {
      // Of several engines one may be at fault, or not fit the options.
      const bool is_fault = error.code() == ExitCode::internal && problem_.options.engine == "auto";
      const bool is_unfit = error.code() == ExitCode::usage && name != problem_.options.engine;
      if (error.code() != ExitCode::unavailable && !is_fault && !is_unfit) throw;
      if (is_fault) faults_.push_back(left_out(error));
      if (!first_error_) first_error_ = error;
    }
  }

  /// Where even the bound for the latest GPU's part to reach all, once before it is there and once after,
  /// leaves something to win.
  void try_at_latest(double bound_us) {
    const double late_us = latest_sources(problem_.demand).front().second;
    const double spreading_us = bound_us - late_us;
    if (!best_ || std::max(late_us, spreading_us) + spreading_us >= best_->proven.schedule.finish_us) return;
    try {
      const Checkpoints::Prefix names(context_.checkpoints(), "latest-");
      if (auto found = summed_at_latest(on_time(problem_), problem_.demand, context_))
        offer(*found, found->proven.demand, "as-ready", std::move(found->proven.schedule));
    } catch (const Error& error) {
      if (error.code() != ExitCode::unavailable && error.code() != ExitCode::usage) throw;
    }
  }

  /// Timed anew with the ready times, where that can be done.
  void offer_retimed(const SynthesisResult& found, const Demand& demand, bool in_order) {
    const Topology& topology = *problem_.topology;
    const std::vector<Send>& sends = found.proven.schedule.sends;
    std::vector<double> keys;
    for (const Send& send : sends) keys.push_back(send.start_us);
    try {
      offer(found, demand, in_order ? "in-order" : "as-ready",
            in_order ? retimed({topology, sends}, topology, demand, problem_.options.concurrency)
                     : interleaved({topology, sends}, topology, demand, keys, problem_.options.concurrency));
    } catch (const Error& error) {
      if (error.code() != ExitCode::unavailable) throw;
    }
  }

  /// Everything as it is, once the last part of a sum is there: sound whatever the sums rest on, but only
  /// where bandwidth does not change.
  void offer_later(const SynthesisResult& found, const Demand& demand) {
    Schedule later = found.proven.schedule;
    delay(later, latest_sources(demand).front().second);
    offer(found, demand, "later", std::move(later));
  }

  /// Kept if it is the best so far and the replay accepts it.
  void offer(const SynthesisResult& found, const Demand& demand, const std::string& how, Schedule timed) {
    const Topology& topology = *problem_.topology;
    const ReplayResult replayed = replay(topology, demand, timed.sends);
    if (!replayed.valid()) return;
    timed.finish_us = replayed.finish_us;
    const std::string engine = found.engine + "/" + how;
    candidates_.push_back({engine, demand.chunks_per_contribution(), timed.finish_us});
    if (best_ && best_->proven.schedule.finish_us <= timed.finish_us) return;
    best_ = SynthesisResult{{topology, demand, std::move(timed), std::nullopt, producer()}};
    best_->engine = engine;
    best_->seed = found.seed;
    best_->metrics = found.metrics;
    best_->limits_hit = found.limits_hit;
    best_->remarks = found.remarks;
  }

  const Problem& problem_;
  const RunContext& context_;
  std::optional<SynthesisResult> best_;
  std::vector<SynthesisResult::Candidate> candidates_;
  std::optional<Error> first_error_;
  std::vector<std::string> faults_;
};

}  // namespace

Problem on_time(const Problem& problem) {
  return {problem.topology, without_late_sums(problem.demand), problem.options, problem.start,
          problem.sketch};
}

SynthesisResult synthesize_late_sums(const Problem& problem, const RunContext& context) {
  return LateSums(problem, context).run();
}

}  // namespace rondo
