#include "rondo/engines/list_rest.hpp"

#include <algorithm>
#include <utility>

#include "list_scheduler.hpp"

namespace rondo {

ListedRest list_rest(const Topology& topology, const Demand& demand, std::span<const Send> on_links,
                     int concurrency, double work) {
  const HopTable hops(topology);
  const PartialSchedule under_way{0, {}, {on_links.begin(), on_links.end()}};
  const std::vector<std::string> policies = list_policies_of_models();
  // A delivery looks through the chunks.
  const double work_each = demand.num_deliveries() * (1 + static_cast<double>(demand.num_chunks()) / 1024);
  const auto tries =
      static_cast<std::size_t>(std::clamp(work / work_each, 1.0, 4 * static_cast<double>(policies.size())));
  ListedRest best;
  Deliveries deliveries;
  for (std::size_t i = 0; i < tries; ++i) {
    const std::string& policy = policies[i % policies.size()];
    const std::uint64_t seed = i / policies.size();
    ListRules rules = list_rules(policy, seed);
    rules.concurrency = concurrency;
    if (i % policies.size() == 0) deliveries = plan_deliveries(topology, hops, demand, seed);
    Schedule schedule = list_schedule(topology, hops, demand, deliveries, rules, &under_way);
    if (i == 0 || schedule.finish_us < best.schedule.finish_us) best = {std::move(schedule), policy};
  }
  return best;
}

}  // namespace rondo
