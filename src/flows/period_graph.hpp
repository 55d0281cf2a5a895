#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "rondo/core/topology.hpp"

namespace rondo {

/// A fabric in periods of time that follow each other: each node and link once a period, and an arc for
/// waiting from a node to itself in the next period. Latencies are left out of account.
class PeriodGraph {
 public:
  PeriodGraph(const Topology& topology, std::size_t num_periods);

  std::size_t num_nodes() const { return num_periods_ * nodes_each_; }
  std::size_t num_arcs() const { return src_.size(); }
  std::size_t num_periods() const { return num_periods_; }
  std::size_t num_links() const { return links_each_; }
  std::size_t node(NodeId n, std::size_t period) const { return period * nodes_each_ + n.index(); }
  NodeId node_of(std::size_t node) const { return NodeId{node % nodes_each_}; }
  std::size_t src(std::size_t arc) const { return src_[arc]; }
  std::size_t dst(std::size_t arc) const { return dst_[arc]; }
  /// Arcs of links come first: link l in period p is p * num_links() + l.
  bool waits(std::size_t arc) const { return arc >= num_periods_ * links_each_; }
  LinkId link(std::size_t arc) const { return LinkId{arc % links_each_}; }
  std::size_t period(std::size_t arc) const { return arc / links_each_; }
  std::span<const std::size_t> out(std::size_t node) const { return out_[node]; }
  std::span<const std::size_t> in(std::size_t node) const { return in_[node]; }

 private:
  void add(std::size_t src, std::size_t dst);

  std::size_t num_periods_;
  std::size_t nodes_each_;
  std::size_t links_each_;
  std::vector<std::size_t> src_;
  std::vector<std::size_t> dst_;
  std::vector<std::vector<std::size_t>> out_;
  std::vector<std::vector<std::size_t>> in_;
};

}  // namespace rondo
