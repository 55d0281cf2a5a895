#include <fmt/format.h>

#include <memory>

#include "policy_table.hpp"
#include "rondo/core/error.hpp"
#include "rondo/engines/bounds.hpp"
#include "rondo/engines/engines.hpp"
#include "rounding.hpp"
#include "route_scheduling.hpp"
#include "route_table.hpp"

namespace rondo {
namespace {

struct Policy {
  std::string name;
  RoutingStart start;
  RouteOrder order;
};

/// The first one is the default.
const std::vector<Policy>& policies() {
  static const std::vector<Policy> table{
      {"bottleneck", RoutingStart::model, RouteOrder::bottleneck},
      {"load", RoutingStart::model, RouteOrder::load},
      {"shortest", RoutingStart::shortest, RouteOrder::bottleneck},
      {"shortest-load", RoutingStart::shortest, RouteOrder::load},
  };
  return table;
}

RouteTable steady_routes(const Topology& topology, const Demand& demand, const FlowField& field) {
  RouteBuilder builder(topology, demand);
  for (const auto& [origin, contributions] : contributions_by_origin(demand)) {
    std::vector<double> flow(topology.num_links(), 0.0);
    for (const FlowField::Entry& entry : field.entries) {
      if (entry.commodity == origin.value) flow[entry.link.index()] += entry.amount;
    }
    std::vector<Sink> sinks;
    for (const std::size_t i : contributions) {
      const Contribution& c = demand.contributions()[i];
      sinks.push_back({topology.node_of(c.destinations.front()).value, c.bytes});
    }
    const auto paths = decompose_flow(topology.graph(), flow, topology.node_of(origin).value, sinks);
    for (std::size_t k = 0; k < sinks.size(); ++k) {
      for (const FlowPath& path : paths[k]) {
        std::vector<LinkId> links;
        for (const int a : path.arcs) links.push_back(LinkId{a});
        builder.add(contributions[k], links, path.amount);
      }
    }
  }
  return builder.build();
}

}  // namespace

const std::vector<std::string>& flow_policies() {
  static const std::vector<std::string> names = names_of(policies());
  return names;
}

PreparedEngine prepare_flow(const Instance& instance, const EngineOptions& options, const Toolbox& tools) {
  if (!instance.demand.is_pairwise()) {
    throw Error(
        ExitCode::unavailable,
        "engine flow carries data with one destination each (AllToAll, Scatter, Gather); use engine list for "
        "multicast demand");
  }
  const auto topology = instance.topology;
  auto table = std::make_shared<RouteTable>();
  EngineResult notes;
  const bool has_model = steady_flow_columns(instance) <= kMaxSteadyFlowColumns;
  if (has_model) {
    const BuiltModel built = tools.steady_state_flow(instance);
    const Solution solution = tools.lp->solve(built.model, options.limits);
    if (solution.status != SolveStatus::optimal) {
      throw Error(
          ExitCode::unavailable,
          fmt::format(
              "engine flow: the steady-state flow ended '{}' in {}; raise the limit or use engine list",
              to_string(solution.status), tools.lp->name()));
    }
    const FlowField field = built.decode(solution);
    *table = steady_routes(*topology, instance.demand, field);
    notes.figures["steady_us"] = field.finish_us;
  } else {
    *table = RouteBuilder(*topology, instance.demand).build();
    notes.remarks.push_back(
        fmt::format("engine flow balanced shortest routes: the steady-state flow of {} columns is beyond {}",
                    steady_flow_columns(instance), kMaxSteadyFlowColumns));
  }
  return [topology, table, has_model, notes](const Demand& demand, const EngineOptions& call) {
    const Policy& policy = find_policy(policies(), call.policy, "flow");
    const RoutedChunks routed = round_to_chunks(*topology, demand, *table,
                                                has_model ? policy.start : RoutingStart::shortest, call.seed);
    EngineResult result = notes;
    result.schedule = schedule_routes(*topology, table->hops, demand, routed, policy.order, call.seed);
    return result;
  };
}

}  // namespace rondo
