#include "origins.hpp"

#include <algorithm>
#include <limits>

namespace rondo::certificates {

Origins::Origins(const Topology& topology) : topology_(&topology) {
  const std::size_t nodes = topology.num_nodes();
  is_passed_.assign(nodes, 0);
  adds_.assign(nodes, 0);
  std::vector<std::map<NodeId, double>> latency_us(nodes);
  // Of all ways to the node, the least of their greatest message costs.
  std::vector<double> cost_us(nodes, std::numeric_limits<double>::infinity());
  for (std::size_t n = 0; n < nodes; ++n) {
    const Node& node = topology.node(NodeId(n));
    is_passed_[n] = node.kind == NodeKind::switch_ && node.forwarding == Forwarding::cut_through ? 1 : 0;
    if (is_passed_[n]) {
      adds_[n] = node.reduce ? 1 : 0;
    } else {
      latency_us[n][NodeId(n)] = 0;
      cost_us[n] = 0;
    }
  }
  for (bool changes = true; changes;) {
    changes = false;
    for (const Link& link : topology.links()) {
      const std::size_t from = link.src.index();
      const std::size_t to = link.dst.index();
      if (!is_passed_[to]) continue;
      for (const auto& [origin, us] : latency_us[from]) {
        const auto [entry, is_new] = latency_us[to].try_emplace(origin, us + link.latency_us);
        if (!is_new && !(us + link.latency_us < entry->second)) continue;
        entry->second = us + link.latency_us;
        changes = true;
      }
      const double cost = std::max(cost_us[from], link.message_us);
      if (cost < cost_us[to]) {
        cost_us[to] = cost;
        changes = true;
      }
      if (adds_[from] && !adds_[to]) {
        adds_[to] = 1;
        changes = true;
      }
    }
  }
  groups_.resize(nodes);
  for (std::size_t n = 0; n < nodes; ++n) {
    std::map<double, std::vector<NodeId>> by_latency;
    for (const auto& [origin, us] : latency_us[n]) by_latency[us].push_back(origin);
    for (auto& [us, origins] : by_latency) groups_[n].push_back({us, std::move(origins)});
  }
  for (const Link& link : topology.links())
    message_us_.push_back(std::max(link.message_us, cost_us[link.src.index()]));
}

}  // namespace rondo::certificates
