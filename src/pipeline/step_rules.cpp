#include "step_rules.hpp"

#include <algorithm>

#include "even_parts.hpp"
#include "rondo/core/replay_parts.hpp"
#include "rondo/local_search/improvement.hpp"
#include "rondo/pipeline/registry.hpp"

namespace rondo {

bool works_in_rounds(const Problem& problem) {
  return problem.options.engine != "auto" && find_engine(problem.options.engine).works_in_rounds;
}

bool local_search_applies(const Problem& problem) {
  const DemandKind kind = problem.demand.kind();
  return kind == DemandKind::multicast || kind == DemandKind::unicast;
}

bool is_adapted(const Problem& problem) {
  return problem.start && !problem.options.gap && !problem.options.time_limit_s;
}

bool may_improve(const Problem& problem) {
  return problem.options.improve_work > 0 && local_search_applies(problem) &&
         find_engine_or_auto(problem.options.engine).supports_local_search;
}

bool replanting_follows(const Problem& problem) {
  return may_improve(problem) && begins_with_replanting(*problem.topology, problem.demand);
}

bool may_be_dealt(const Problem& problem, int chunks) {
  const Demand demand = problem.demand.with_chunks(chunks);
  const auto all_want = [&](const Contribution& c) {
    return c.destinations.size() + 1 == demand.num_gpus() && c.sources.empty();
  };
  return demand.num_deliveries() > kMostPlannedTransfers && !problem.topology->has_message_costs() &&
         demand.kind() == DemandKind::multicast && std::ranges::all_of(demand.contributions(), all_want) &&
         replays_in_parts(*problem.topology, demand);
}

bool may_join(const Problem& problem) {
  return problem.options.join && problem.options.improve_work > 0 && problem.topology->has_message_costs() &&
         !problem.topology->has_bandwidth_steps() && problem.demand.kind() != DemandKind::all_reduction &&
         !find_engine_or_auto(problem.options.engine).works_in_rounds;
}

Problem in_parts(const Problem& problem) {
  Problem divided = problem;
  // Rounds number the chunks of a custom demand.
  if (works_in_rounds(problem) && problem.demand.collective() == Collective::custom) return divided;
  std::optional<Demand> parts = in_even_parts(problem.demand);
  if (!parts) return divided;
  divided.demand = *std::move(parts);
  divided.bounds = nullptr;
  divided.known_bound = nullptr;
  return divided;
}

}  // namespace rondo
