#include "timed_routes.hpp"

#include <algorithm>

#include "rondo/graph/digraph.hpp"

namespace rondo {
namespace {

/// Node v in interval i is v * times + i; the end of time is one more interval. Its arcs: the decoded flows
/// of one origin, and waiting at v from i to i + 1. What lands in an interval can leave in the same one.
class TimedGraph {
 public:
  /// `starts`: first epochs of the intervals, then the number of epochs.
  TimedGraph(const Topology& topology, const std::vector<int>& starts)
      : topology_(topology),
        starts_(starts),
        times_(starts.size()),
        graph_{static_cast<int>(topology.num_nodes() * times_), {}} {}

  int node(NodeId v, int epoch) const {
    const auto i = std::lower_bound(starts_.begin(), starts_.end(), epoch) - starts_.begin();
    return static_cast<int>(v.index() * times_) + static_cast<int>(i);
  }

  void add_flow(const FlowField::Entry& entry) {
    const Link& link = topology_.link(entry.link);
    graph_.arcs.push_back({node(link.src, entry.epoch), node(link.dst, entry.lands)});
    flow_.push_back(entry.amount);
    entries_.push_back(&entry);
  }

  /// To be called after all flows: what has arrived and not yet left waits; at the origin all of it from time
  /// 0.
  void add_waiting(NodeId origin) {
    std::vector<double> gain(topology_.num_nodes() * times_, 0.0);
    const std::size_t flows = graph_.arcs.size();
    for (std::size_t a = 0; a < flows; ++a) {
      gain[static_cast<std::size_t>(graph_.arcs[a].dst)] += flow_[a];
      gain[static_cast<std::size_t>(graph_.arcs[a].src)] -= flow_[a];
      if (graph_.arcs[a].src / static_cast<int>(times_) == origin.value)
        gain[origin.index() * times_] += flow_[a];
    }
    for (std::size_t v = 0; v < topology_.num_nodes(); ++v) {
      double waiting = 0;
      for (std::size_t k = 0; k + 1 < times_; ++k) {
        waiting += gain[v * times_ + k];
        if (waiting <= 0) continue;
        const auto here = static_cast<int>(v * times_ + k);
        graph_.arcs.push_back({here, here + 1});
        flow_.push_back(waiting);
        entries_.push_back(nullptr);
      }
    }
  }

  const Digraph& graph() const { return graph_; }
  const std::vector<double>& flow() const { return flow_; }
  /// What an arc carries; null while waiting.
  const FlowField::Entry* entry(int arc) const { return entries_[static_cast<std::size_t>(arc)]; }

 private:
  const Topology& topology_;
  const std::vector<int>& starts_;
  std::size_t times_;
  Digraph graph_;
  std::vector<double> flow_;
  std::vector<const FlowField::Entry*> entries_;
};

}  // namespace

RouteTable timed_routes(const Instance& instance, const FlowField& field, double delivered,
                        const Symmetry& symmetry) {
  const Topology& topology = *instance.topology;
  const EpochGrid& grid = *instance.grid;
  std::vector<int> starts = instance.interval_starts;
  for (int k = 0; instance.interval_starts.empty() && k < grid.num_epochs; ++k) starts.push_back(k);
  starts.push_back(grid.num_epochs);
  RouteBuilder builder(topology, instance.demand);
  for (const auto& [origin, contributions] : contributions_by_origin(instance.demand)) {
    TimedGraph timed(topology, starts);
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
