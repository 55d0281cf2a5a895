#include "rondo/decomp/timed_graph.hpp"

#include <algorithm>

namespace rondo {

TimedGraph::TimedGraph(const Topology& topology, const std::vector<int>& bounds)
    : bounds_(bounds),
      nodes_(topology.num_nodes()),
      times_(bounds.size()),
      topology_(topology),
      graph_{static_cast<int>(nodes_ * times_), {}} {}

int TimedGraph::node(NodeId v, int epoch) const {
  const auto next = std::upper_bound(bounds_.begin(), bounds_.end(), epoch);
  return static_cast<int>(v.index() * times_) + static_cast<int>(next - bounds_.begin()) - 1;
}

void TimedGraph::add_flow(const FlowField::Entry& entry) {
  const Link& link = topology_.link(entry.link);
  add_arc(node(link.src, entry.epoch), node(link.dst, entry.lands), entry.amount);
  entries_.back() = &entry;
}

int TimedGraph::add_arc(int src, int dst, double amount) {
  graph_.arcs.push_back({src, dst});
  flow_.push_back(amount);
  entries_.push_back(nullptr);
  return static_cast<int>(graph_.arcs.size()) - 1;
}

void TimedGraph::add_waiting(NodeId origin) {
  std::vector<double> gain(nodes_ * times_, 0.0);
  const std::size_t flows = graph_.arcs.size();
  for (std::size_t a = 0; a < flows; ++a) {
    gain[static_cast<std::size_t>(graph_.arcs[a].dst)] += flow_[a];
    gain[static_cast<std::size_t>(graph_.arcs[a].src)] -= flow_[a];
    if (graph_.arcs[a].src / static_cast<int>(times_) == origin.value)
      gain[origin.index() * times_] += flow_[a];
  }
  for (std::size_t v = 0; v < nodes_; ++v) {
    double waiting = 0;
    for (std::size_t k = 0; k + 1 < times_; ++k) {
      waiting += gain[v * times_ + k];
      if (waiting <= 0) continue;
      const auto here = static_cast<int>(v * times_ + k);
      add_arc(here, here + 1, waiting);
    }
  }
}

}  // namespace rondo
