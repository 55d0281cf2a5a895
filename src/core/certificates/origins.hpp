#pragma once

#include <map>
#include <vector>

#include "rondo/core/topology.hpp"

namespace rondo::certificates {

/// Where transfers that take a link may have begun: GPUs and store-and-forward switches, the link's own end
/// or those from which ways over cut-through switches alone lead there.
class Origins {
 public:
  /// Those of which the shortest way to the link takes equally long.
  struct Group {
    double latency_us = 0;
    std::vector<NodeId> nodes = {};
  };

  explicit Origins(const Topology& topology);

  /// Whether transfers pass the node without an end: a cut-through switch.
  bool is_passed(NodeId n) const { return is_passed_[n.index()] != 0; }
  const std::vector<Group>& of(LinkId l) const { return groups_[src(l)]; }
  /// The message cost of a transfer over the link at least.
  double message_us(LinkId l) const { return message_us_[l.index()]; }
  /// Whether a transfer may have several origins, which a switch adds up.
  bool adds(LinkId l) const { return adds_[src(l)] != 0; }

 private:
  std::size_t src(LinkId l) const { return topology_->link(l).src.index(); }

  const Topology* topology_;
  std::vector<char> is_passed_;
  std::vector<std::vector<Group>> groups_;  ///< per node
  std::vector<double> message_us_;          ///< per link
  std::vector<char> adds_;                  ///< per node
};

}  // namespace rondo::certificates
