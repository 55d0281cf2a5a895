#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rondo/core/generators.hpp"
#include "rondo/core/topology.hpp"

/// Small topologies by hand and generated ones.
namespace rondo {

inline constexpr double kMB = 1e6;  ///< takes 1000 us at 1 GB/s

inline Node gpu() {
  return {};
}
inline Node network_switch(Forwarding forwarding = Forwarding::cut_through) {
  Node node;
  node.kind = NodeKind::switch_;
  node.forwarding = forwarding;
  return node;
}
inline Link link(int src, int dst, double bandwidth_GBps = 1, double latency_us = 1) {
  return {NodeId{src}, NodeId{dst}, bandwidth_GBps, latency_us};
}
inline std::shared_ptr<const Topology> fabric(std::vector<Node> nodes, std::vector<Link> links,
                                              std::vector<SharedBandwidth> shared = {}) {
  return std::make_shared<const Topology>(
      TopologyData{"test", "", std::move(nodes), std::move(links), std::move(shared)});
}
/// Links 0 -> 1 -> ... -> 0, 1 GB/s, 1 us.
inline std::shared_ptr<const Topology> one_way_ring(int gpus, double latency_us = 1) {
  std::vector<Link> links;
  for (int g = 0; g < gpus; ++g) links.push_back(link(g, (g + 1) % gpus, 1, latency_us));
  return fabric(std::vector<Node>(static_cast<std::size_t>(gpus)), links);
}
/// GPUs around one switch, the last node; 1 GB/s, 1 us.
inline std::shared_ptr<const Topology> star(int gpus, Forwarding forwarding = Forwarding::cut_through) {
  std::vector<Node> nodes(static_cast<std::size_t>(gpus));
  nodes.push_back(network_switch(forwarding));
  std::vector<Link> links;
  for (int g = 0; g < gpus; ++g) links.push_back(link(g, gpus));
  for (int g = 0; g < gpus; ++g) links.push_back(link(gpus, g));
  return fabric(nodes, links);
}
inline std::shared_ptr<const Topology> generated(const std::string& family,
                                                 const std::map<std::string, std::string>& values = {}) {
  return std::make_shared<const Topology>(generate_topology(family, values));
}
/// `share` of the links, chosen by `seed`, at half of their bandwidth.
inline std::shared_ptr<const Topology> damaged(const Topology& whole, double share, std::uint64_t seed) {
  return std::make_shared<const Topology>(degrade(whole, share, 0.5, seed));
}

}  // namespace rondo
