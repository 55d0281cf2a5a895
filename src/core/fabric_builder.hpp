#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rondo/core/topology.hpp"

namespace rondo {

struct LinkFigures {
  double bandwidth_GBps = 0;
  double latency_us = 0;
  double message_us = 0;
};

/// What a switch may do with what passes through it.
struct SwitchFigures {
  bool multicast = true;
  bool reduce = false;
};

/// Collects the nodes and links of a generated topology. Ids are given in the order of the calls. Throws
/// Error(unavailable) as soon as a cap is passed, so that absurd parameters fail before they fill the memory.
class TopologyBuilder {
 public:
  TopologyBuilder(std::string name, std::string source);

  NodeId gpu(std::string name, std::optional<int> chassis = std::nullopt);
  NodeId add_switch(std::string name, SwitchFigures figures);
  void link(NodeId src, NodeId dst, LinkFigures figures);
  /// A link each way.
  void connect(NodeId a, NodeId b, LinkFigures figures);
  /// Every node with every other.
  void connect_all(const std::vector<NodeId>& nodes, LinkFigures figures);

  Topology build() &&;

 private:
  NodeId add(Node node);

  TopologyData data_;
};

}  // namespace rondo
