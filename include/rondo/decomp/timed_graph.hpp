#pragma once

#include <vector>

#include "rondo/core/topology.hpp"
#include "rondo/graph/digraph.hpp"
#include "rondo/model/formulation.hpp"

namespace rondo {

/// The decoded flow of one origin over time, as a graph and flows on its arcs. A node of it is a node of the
/// topology in an interval; the end of time is one more interval. Arcs are entries and waiting at a node from
/// an interval to the next. What lands in an interval can leave in the same one.
class TimedGraph {
 public:
  /// `bounds`: see interval_bounds().
  TimedGraph(const Topology& topology, const std::vector<int>& bounds);

  /// Of the interval that `epoch` is in.
  int node(NodeId v, int epoch) const;
  /// The entry has to outlive the graph.
  void add_flow(const FlowField::Entry& entry);
  /// What is no entry; returns its arc.
  int add_arc(int src, int dst, double amount);
  /// To be called after all flows: what has arrived and not yet left waits; at the origin all of it from time
  /// 0.
  void add_waiting(NodeId origin);

  const Digraph& graph() const { return graph_; }
  const std::vector<double>& flow() const { return flow_; }
  /// What an arc carries; null where that is no entry.
  const FlowField::Entry* entry(int arc) const { return entries_[static_cast<std::size_t>(arc)]; }

 private:
  std::vector<int> bounds_;
  std::size_t nodes_;
  std::size_t times_;
  const Topology& topology_;
  Digraph graph_;
  std::vector<double> flow_;
  std::vector<const FlowField::Entry*> entries_;
};

}  // namespace rondo
