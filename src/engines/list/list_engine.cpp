#include <memory>

#include "list_scheduler.hpp"
#include "policy_table.hpp"
#include "rondo/engines/engines.hpp"

namespace rondo {
namespace {

struct ListPolicy {
  std::string name;
  ListRules rules;
};

/// The first one is the default.
const std::vector<ListPolicy>& list_policy_table() {
  static const std::vector<ListPolicy> table{
      {"rarest", {ChunkOrder::rarest, SenderOrder::best_chunk, false, false, 0}},
      {"rarest-full", {ChunkOrder::rarest, SenderOrder::fullest, false, false, 0}},
      {"rarest-far-full", {ChunkOrder::rarest, SenderOrder::fullest, true, false, 0}},
      {"furthest", {ChunkOrder::furthest, SenderOrder::best_chunk, true, false, 0}},
      {"soonest", {ChunkOrder::furthest, SenderOrder::best_chunk, true, true, 0}},
      {"furthest-full", {ChunkOrder::furthest, SenderOrder::fullest, true, false, 0}},
  };
  return table;
}

}  // namespace

ListRules list_rules(const std::string& policy, std::uint64_t seed) {
  ListRules rules = find_policy(list_policy_table(), policy, "list").rules;
  rules.seed = seed;
  return rules;
}

const std::vector<std::string>& list_policies() {
  static const std::vector<std::string> names = names_of(list_policy_table());
  return names;
}

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
