#include "flow_policies.hpp"

#include <algorithm>
#include <tuple>

namespace rondo {
namespace {

bool begin_alike(const FlowPolicy& a, const FlowPolicy& b) {
  return std::tie(a.start, a.by_orbits, a.rates) == std::tie(b.start, b.by_orbits, b.rates);
}

}  // namespace

const std::vector<FlowPolicy>& flow_policy_table() {
  static const std::vector<FlowPolicy> table{
      {"bottleneck", RoutingStart::model, RouteOrder::bottleneck},
      {"load", RoutingStart::model, RouteOrder::load},
      {"shortest", RoutingStart::shortest, RouteOrder::bottleneck},
      {"shortest-load", RoutingStart::shortest, RouteOrder::load},
      {"alone", RoutingStart::model, RouteOrder::bottleneck, false, FlowRates::alone},
      {"orbits", RoutingStart::model, RouteOrder::bottleneck, true},
      {"fitting", RoutingStart::model, RouteOrder::bottleneck, false, FlowRates::fitting},
      {"orbits-fitting", RoutingStart::model, RouteOrder::bottleneck, true, FlowRates::fitting},
      {"fine", RoutingStart::model, RouteOrder::bottleneck, false, FlowRates::fine},
      {"orbits-fine", RoutingStart::model, RouteOrder::bottleneck, true, FlowRates::fine},
      {"constant", RoutingStart::model, RouteOrder::bottleneck, false, FlowRates::constant},
      {"orbits-constant", RoutingStart::model, RouteOrder::bottleneck, true, FlowRates::constant},
  };
  return table;
}

const FlowPolicy& beginning_of(const FlowPolicy& policy) {
  return *std::ranges::find_if(flow_policy_table(),
                               [&](const FlowPolicy& other) { return begin_alike(policy, other); });
}

bool others_begin_alike(const FlowPolicy& policy) {
  return std::ranges::count_if(flow_policy_table(),
                               [&](const FlowPolicy& other) { return begin_alike(policy, other); }) > 1;
}

}  // namespace rondo
