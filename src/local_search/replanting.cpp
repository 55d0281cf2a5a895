#include "replanting.hpp"

#include <algorithm>

#include "forest.hpp"
#include "replanting_chain.hpp"
#include "rondo/local_search/justification.hpp"
#include "rondo/local_search/streams.hpp"

namespace rondo {

bool may_replant(const PlanSpace& space) {
  return !space.topology->has_message_costs() && Forest::applies(space);
}

bool passes_switches(const PlanSpace& space) {
  return std::ranges::any_of(space.hops, [](const Hop& hop) { return hop.links.size() > 1; });
}

Replanting replanted(const SurveyedPlan& incumbent, const PlanSpace& space, double bound_us, double length,
                     std::uint64_t seed) {
  const double most_grown =
      length * share_of_usual_hops(space) * static_cast<double>(space.demand.num_chunks());
  Forest forest(incumbent.plan, space);
  ReplantingChain chain(forest, space, bound_us, seed);
  Replanting found{chain.run(most_grown), chain.took_long()};
  if (!found.plan) return found;
  found.plan->quality = quality_of(found.plan->transfers, space);
  if (!is_time_over(space))
    found.plan = justified(placed_forward(*found.plan, space, starts_of(*found.plan)), space);
  return found;
}

}  // namespace rondo
