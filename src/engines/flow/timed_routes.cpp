#include "timed_routes.hpp"

#include "rondo/decomp/timed_graph.hpp"

namespace rondo {

RouteTable timed_routes(const Instance& instance, const FlowField& field, double delivered,
                        const Symmetry& symmetry) {
  const Topology& topology = *instance.topology;
  const EpochGrid& grid = *instance.grid;
  const std::vector<int> bounds = interval_bounds(instance);
  RouteBuilder builder(topology, instance.demand);
  for (const auto& [origin, contributions] : contributions_by_origin(instance.demand)) {
    TimedGraph timed(topology, bounds);
    const std::vector<FlowField::Entry> entries = entries_of(topology, symmetry, field, origin);
    for (const FlowField::Entry& entry : entries) timed.add_flow(entry);
    timed.add_waiting(topology.node_of(origin));
    std::vector<Sink> sinks;
    for (const std::size_t i : contributions) {
      const Contribution& c = instance.demand.contributions()[i];
      sinks.push_back(
          {timed.node(topology.node_of(c.destinations.front()), grid.num_epochs), c.bytes * delivered});
    }
    const auto paths =
        decompose_flow(timed.graph(), timed.flow(), timed.node(topology.node_of(origin), 0), sinks);
    for (std::size_t k = 0; k < sinks.size(); ++k) {
      for (const FlowPath& path : paths[k]) {
        std::vector<LinkId> links;
        std::vector<double> start_us;
        for (const int a : path.arcs) {
          const FlowField::Entry* entry = timed.entry(a);
          if (entry == nullptr) continue;
          links.push_back(entry->link);
          start_us.push_back(entry->epoch * grid.tau_us);
        }
        builder.add(contributions[k], links, path.amount, start_us);
      }
    }
  }
  return builder.build();
}

}  // namespace rondo
