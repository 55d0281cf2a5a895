#include "without_relays.hpp"

#include <utility>

#include "replayed.hpp"
#include "rondo/core/subfabric.hpp"

namespace rondo {

Problem on_members(const Problem& problem) {
  const Subfabric part(*problem.topology, problem.demand);
  return {std::make_shared<const Topology>(part.topology()), part.demand_of(problem.demand), problem.options};
}

SynthesisResult of_whole_fabric(const Problem& problem, SynthesisResult result) {
  const Subfabric part(*problem.topology, problem.demand);
  ProvenSchedule& proven = result.proven;
  Schedule schedule{part.sends_of_whole(std::move(proven.schedule.sends))};
  Demand demand = problem.demand.with_chunks(proven.demand.chunks_per_contribution());
  schedule.finish_us =
      replayed_finish_us(*problem.topology, demand, schedule.sends, result.engine + ", in a group,");
  LowerBound bound{proven.lower_bound->us, part.certificate_of_whole(proven.lower_bound->certificate)};
  proven = {*problem.topology, std::move(demand), std::move(schedule), std::move(bound), proven.producer};
  result.gap = proven.schedule.finish_us / proven.lower_bound->us - 1;
  return result;
}

Bounds of_whole_fabric(const Problem& problem, Bounds bounds) {
  const Subfabric part(*problem.topology, problem.demand);
  for (LowerBound& bound : bounds.all) bound.certificate = part.certificate_of_whole(bound.certificate);
  return bounds;
}

}  // namespace rondo
