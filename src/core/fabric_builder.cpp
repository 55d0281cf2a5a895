#include "fabric_builder.hpp"

#include <fmt/format.h>

#include <utility>

#include "rondo/core/error.hpp"

namespace rondo {

TopologyBuilder::TopologyBuilder(std::string name, std::string source)
    : data_{.name = std::move(name), .source = std::move(source)} {}

NodeId TopologyBuilder::add(Node node) {
  if (data_.nodes.size() == kMaxNodes) {
    throw Error(
        ExitCode::unavailable,
        fmt::format("topology '{}' has more than {} nodes, the cap; make it smaller", data_.name, kMaxNodes));
  }
  data_.nodes.push_back(std::move(node));
  return NodeId(data_.nodes.size() - 1);
}

NodeId TopologyBuilder::gpu(std::string name, std::optional<int> chassis) {
  return add({.kind = NodeKind::gpu, .chassis = chassis, .name = std::move(name)});
}

NodeId TopologyBuilder::add_switch(std::string name, SwitchFigures figures) {
  return add({.kind = NodeKind::switch_,
              .name = std::move(name),
              .multicast = figures.multicast,
              .reduce = figures.reduce});
}

void TopologyBuilder::link(NodeId src, NodeId dst, LinkFigures figures) {
  if (data_.links.size() == kMaxLinks) {
    throw Error(
        ExitCode::unavailable,
        fmt::format("topology '{}' has more than {} links, the cap; make it smaller", data_.name, kMaxLinks));
  }
  data_.links.push_back({.src = src,
                         .dst = dst,
                         .bandwidth_GBps = figures.bandwidth_GBps,
                         .latency_us = figures.latency_us,
                         .message_us = figures.message_us});
}

void TopologyBuilder::connect(NodeId a, NodeId b, LinkFigures figures) {
  link(a, b, figures);
  link(b, a, figures);
}

void TopologyBuilder::connect_all(const std::vector<NodeId>& nodes, LinkFigures figures) {
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (std::size_t j = i + 1; j < nodes.size(); ++j) connect(nodes[i], nodes[j], figures);
  }
}

Topology TopologyBuilder::build() && {
  return Topology(std::move(data_));
}

}  // namespace rondo
