#include <fmt/format.h>

#include <memory>

#include "path_decomposition.hpp"
#include "policy_table.hpp"
#include "rondo/core/error.hpp"
#include "rondo/engines/engines.hpp"
#include "rounding.hpp"
#include "route_scheduling.hpp"

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
  std::vector<std::vector<double>> flow(topology.num_gpus());
  for (const FlowField::Entry& entry : field.entries) {
    auto& of_origin = flow[static_cast<std::size_t>(entry.commodity)];
    of_origin.resize(topology.num_links(), 0.0);
    of_origin[entry.link.index()] += entry.amount;
  }
  for (std::size_t s = 0; s < topology.num_gpus(); ++s) {
    if (flow[s].empty()) continue;
    std::vector<std::size_t> contributions;
    std::vector<Sink> sinks;
    for (std::size_t i = 0; i < demand.contributions().size(); ++i) {
      const Contribution& c = demand.contributions()[i];
      if (c.origin != GpuId{s}) continue;
      contributions.push_back(i);
      sinks.push_back({topology.node_of(c.destinations.front()).value, c.bytes});
    }
    const auto paths = decompose_flow(topology.graph(), flow[s], topology.node_of(GpuId{s}).value, sinks);
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
  const auto topology = instance.topology;
  const BuiltModel built = tools.steady_state_flow(instance);
  const Solution solution = tools.lp->solve(built.model, options.limits);
  if (solution.status != SolveStatus::optimal) {
    throw Error(ExitCode::unavailable,
                fmt::format("engine flow: the steady-state flow ended '{}' in {}; use engine list",
                            to_string(solution.status), tools.lp->name()));
  }
  const FlowField field = built.decode(solution);
  const auto table = std::make_shared<const RouteTable>(steady_routes(*topology, instance.demand, field));
  return [topology, table, steady_us = field.finish_us](const Demand& demand, const EngineOptions& call) {
    const Policy& policy = find_policy(policies(), call.policy, "flow");
    const RoutedChunks routed = round_to_chunks(*topology, demand, *table, policy.start, call.seed);
    EngineResult result;
    result.schedule = schedule_routes(*topology, table->hops, demand, routed, policy.order, call.seed);
    result.figures["steady_us"] = steady_us;
    return result;
  };
}

}  // namespace rondo
