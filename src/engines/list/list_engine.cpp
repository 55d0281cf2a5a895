#include <memory>

#include "list_scheduler.hpp"
#include "rondo/engines/engines.hpp"

namespace rondo {

PreparedEngine prepare_list(const Instance& instance, const EngineOptions&, const Toolbox&) {
  const auto topology = instance.topology;
  const auto hops = std::make_shared<const HopTable>(*topology);
  return [topology, hops](const Demand& demand, const EngineOptions& options) {
    const ListRules rules = list_rules(options.policy, options.seed);
    const Deliveries deliveries = plan_deliveries(*topology, *hops, demand, options.seed);
    EngineResult result;
    const Deadline deadline(options.limits);
    result.schedule = list_schedule(*topology, *hops, demand, deliveries, rules, deadline);
    if (!result.schedule) result.limits_hit.push_back(deadline.ended_by());
    return result;
  };
}

}  // namespace rondo
