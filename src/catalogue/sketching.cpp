#include "sketching.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "rondo/core/error.hpp"
#include "rondo/core/hops.hpp"
#include "rondo/core/sketch_candidates.hpp"
#include "rondo/core/version.hpp"
#include "rondo/parallel/communicator.hpp"
#include "rondo/pipeline/bound.hpp"
#include "rondo/pipeline/synthesize.hpp"

namespace rondo::catalogue {
namespace {

std::size_t joined_pairs(const Topology& topology) {
  std::set<std::pair<GpuId, GpuId>> pairs;
  const HopTable table(topology);
  for (const Hop& hop : table.hops()) pairs.insert({hop.src, hop.dst});
  return pairs.size();
}

std::string full_name(const SketchCandidate& candidate) {
  std::string text = candidate.name + ":";
  for (const auto& [sender, receivers] : *candidate.sketch.conn)
    text += fmt::format(" {}>{}", sender, fmt::join(receivers, ","));
  return text;
}

/// Nothing where `make` cannot: other sketches may do.
template <class Make>
auto if_possible(Make make) -> decltype(make()) {
  try {
    return make();
  } catch (const Error& error) {
    if (error.code() != ExitCode::unavailable && error.code() != ExitCode::bad_data) throw;
    return std::nullopt;
  }
}

}  // namespace

std::vector<NamedFabric> sketched_fabrics(const Topology& topology) {
  const std::size_t pairs = joined_pairs(topology);
  std::vector<NamedFabric> fabrics;
  for (const SketchCandidate& candidate : sketch_candidates(topology)) {
    auto left = if_possible([&] { return std::optional(sketched_fabric(topology, candidate.sketch)); });
    if (!left || joined_pairs(left->topology) == pairs) continue;
    fabrics.push_back({full_name(candidate), std::make_shared<const Topology>(std::move(left->topology)),
                       std::move(left->originals)});
  }
  return fabrics;
}

std::optional<double> bound_over(const NamedFabric& sketch, const Demand& demand) {
  const auto alone = make_local_communicator();
  return if_possible([&] {
    return std::optional(rondo::bound({sketch.topology, demand}, {*alone}).best().us);
  });
}

std::optional<SketchedSolution> solve_over(const NamedFabric& sketch, const Topology& whole,
                                           const Demand& demand, const SolveOptions& options,
                                           const std::atomic<bool>* interrupt) {
  const auto alone = make_local_communicator();
  const RunContext context{*alone, [](const std::string&) {}, interrupt};
  return if_possible([&]() -> std::optional<SketchedSolution> {
    SynthesisResult found = synthesize({sketch.topology, demand, options}, context);
    if (context.interrupt_came()) return std::nullopt;
    auto schedule = on_whole_fabric({*sketch.topology, sketch.originals}, found.proven.schedule, whole,
                                    found.proven.demand, options.concurrency);
    if (!schedule) return std::nullopt;
    return SketchedSolution{
        {whole, std::move(found.proven.demand), std::move(*schedule), std::nullopt, producer()},
        std::move(found.engine),
        found.seed};
  });
}

}  // namespace rondo::catalogue
