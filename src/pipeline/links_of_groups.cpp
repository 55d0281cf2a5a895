#include "links_of_groups.hpp"

#include <memory>
#include <utility>

#include "replayed.hpp"
#include "rondo/core/group_limits.hpp"
#include "rondo/pipeline/bound.hpp"

namespace rondo {
namespace {

std::shared_ptr<const ProvenSchedule> within_groups(const std::shared_ptr<const ProvenSchedule>& kept) {
  if (!kept) return nullptr;
  std::optional<Topology> within = within_groups(kept->topology);
  if (!within) return kept;
  ProvenSchedule inside = *kept;
  drop_rates(*within, inside.demand, inside.schedule.sends);
  inside.topology = *std::move(within);
  return std::make_shared<const ProvenSchedule>(std::move(inside));
}

}  // namespace

std::optional<Problem> within_groups(const Problem& problem) {
  std::optional<Topology> within = within_groups(*problem.topology);
  if (!within) return std::nullopt;
  Problem inside = problem;
  inside.topology = std::make_shared<const Topology>(*std::move(within));
  inside.start = within_groups(problem.start);
  inside.halves = within_groups(problem.halves);
  inside.known_bound = nullptr;  // its certificate numbers other links
  return inside;
}

SynthesisResult on_whole_links(const Problem& problem, SynthesisResult result, const RunContext& context) {
  ProvenSchedule& proven = result.proven;
  Schedule& schedule = proven.schedule;
  set_rates(*problem.topology, proven.topology, proven.demand, schedule.sends);
  schedule.finish_us = replayed_finish_us(*problem.topology, proven.demand, schedule.sends, result.engine);
  proven.topology = *problem.topology;
  proven.lower_bound = problem.bounds ? problem.bounds->best() : bound(problem, context).best();
  result.gap = schedule.finish_us / proven.lower_bound->us - 1;
  return result;
}

}  // namespace rondo
