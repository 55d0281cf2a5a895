#include "rondo/core/topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "refuse.hpp"
#include "rondo/core/error.hpp"

namespace rondo {
namespace {

void check_cap(const TopologyData& data, std::size_t count, std::size_t cap, const char* what) {
  if (count > cap) {
    throw Error(ExitCode::unavailable, fmt::format("topology '{}' has {} {}; at most {} are supported",
                                                   data.name, count, what, cap));
  }
}

void check_bandwidth(const std::string& owner, double bandwidth_GBps) {
  if (!(bandwidth_GBps > 0) || !std::isfinite(bandwidth_GBps)) {
    refuse(fmt::format("{}: bandwidth_GBps is {}; it has to be positive and finite", owner, bandwidth_GBps));
  }
}

void check_node(std::size_t id, const Node& node) {
  if (!(node.buffer_bytes >= 0) || !std::isfinite(node.buffer_bytes)) {
    refuse(
        fmt::format("node {}: buffer_bytes is {}; it has to be 0 or more and finite", id, node.buffer_bytes));
  }
  if (!(node.relay_bytes >= 0)) {
    refuse(fmt::format("node {}: buffer_bytes is {}; it has to be 0 or more", id, node.relay_bytes));
  }
}

void check_steps(std::size_t id, const Link& link) {
  const auto& steps = link.bandwidth_steps;
  if (steps.empty()) return;
  if (steps.front() != BandwidthStep{0, link.bandwidth_GBps}) {
    refuse(fmt::format(
        "link {}: bandwidth_steps begin with {} GB/s from {} us; they have to begin from 0 with the link's "
        "bandwidth_GBps, {}",
        id, steps.front().GBps, steps.front().from_us, link.bandwidth_GBps));
  }
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (!(steps[i].GBps >= 0) || !std::isfinite(steps[i].GBps)) {
      refuse(fmt::format("link {}: from {} us the bandwidth is {} GB/s; it has to be 0 or more and finite",
                         id, steps[i].from_us, steps[i].GBps));
    }
    if (i > 0 && (!(steps[i].from_us > steps[i - 1].from_us) || !std::isfinite(steps[i].from_us))) {
      refuse(fmt::format("link {}: a bandwidth step from {} us follows one from {} us; steps have to ascend",
                         id, steps[i].from_us, steps[i - 1].from_us));
    }
  }
}

void check_link(std::size_t id, const Link& link, std::size_t num_nodes) {
  for (const auto& [end, node] : {std::pair{"src", link.src}, std::pair{"dst", link.dst}}) {
    if (!node.valid() || node.index() >= num_nodes) {
      refuse(fmt::format("link {}: {} is node {}, which does not exist; nodes are 0 to {}", id, end,
                         node.value, num_nodes - 1));
    }
  }
  if (link.src == link.dst) {
    refuse(fmt::format("link {}: src and dst are both node {}; a link has to join two nodes", id,
                       link.src.value));
  }
  check_bandwidth(fmt::format("link {}", id), link.bandwidth_GBps);
  if (!(link.latency_us >= 0) || !std::isfinite(link.latency_us)) {
    refuse(fmt::format("link {}: latency_us is {}; it has to be 0 or more and finite", id, link.latency_us));
  }
  if (!(link.message_us >= 0) || !std::isfinite(link.message_us)) {
    refuse(fmt::format("link {}: message_us is {}; it has to be 0 or more and finite", id, link.message_us));
  }
  check_steps(id, link);
}

void check_group(const SharedBandwidth& group, std::size_t num_links) {
  const std::string owner = fmt::format("shared_bandwidth '{}'", group.name);
  check_bandwidth(owner, group.bandwidth_GBps);
  if (group.links.empty()) refuse(owner + ": it names no link; name the links that share the bandwidth");
  std::vector<LinkId> sorted = group.links;
  std::sort(sorted.begin(), sorted.end());
  for (const LinkId l : {sorted.front(), sorted.back()}) {
    if (!l.valid() || l.index() >= num_links) {
      refuse(fmt::format("{}: link {} does not exist; links are 0 to {}", owner, l.value,
                         static_cast<std::ptrdiff_t>(num_links) - 1));
    }
  }
  const auto repeated = std::adjacent_find(sorted.begin(), sorted.end());
  if (repeated != sorted.end()) {
    refuse(fmt::format("{}: link {} is named twice; name every link once", owner, repeated->value));
  }
}

void validate(const TopologyData& data) {
  check_cap(data, data.nodes.size(), kMaxNodes, "nodes");
  check_cap(data, data.links.size(), kMaxLinks, "links");
  const auto gpus = std::count_if(data.nodes.begin(), data.nodes.end(),
                                  [](const Node& node) { return node.kind == NodeKind::gpu; });
  if (gpus < 2) {
    refuse(fmt::format("a collective needs at least two GPUs; topology '{}' has {}", data.name, gpus));
  }
  for (std::size_t n = 0; n < data.nodes.size(); ++n) check_node(n, data.nodes[n]);
  for (std::size_t l = 0; l < data.links.size(); ++l) check_link(l, data.links[l], data.nodes.size());
  for (const SharedBandwidth& group : data.shared_bandwidth) check_group(group, data.links.size());
}

}  // namespace

Topology::Topology(TopologyData data) : data_(std::move(data)) {
  validate(data_);
  node_gpu_.resize(data_.nodes.size());
  for (std::size_t n = 0; n < data_.nodes.size(); ++n) {
    if (data_.nodes[n].kind != NodeKind::gpu) continue;
    node_gpu_[n] = GpuId(gpu_node_.size());
    gpu_node_.push_back(NodeId(n));
  }
  out_links_.resize(data_.nodes.size());
  in_links_.resize(data_.nodes.size());
  graph_.num_nodes = static_cast<int>(data_.nodes.size());
  graph_.arcs.reserve(data_.links.size());
  for (std::size_t l = 0; l < data_.links.size(); ++l) {
    const Link& link = data_.links[l];
    out_links_[link.src.index()].push_back(LinkId(l));
    in_links_[link.dst.index()].push_back(LinkId(l));
    graph_.arcs.push_back({link.src.value, link.dst.value});
    has_message_costs_ = has_message_costs_ || link.message_us > 0;
    has_bandwidth_steps_ = has_bandwidth_steps_ || !link.bandwidth_steps.empty();
  }
  for (const Node& node : data_.nodes) {
    limits_relay_memory_ =
        limits_relay_memory_ || (node.kind == NodeKind::gpu && std::isfinite(node.relay_bytes));
    has_adding_switches_ = has_adding_switches_ || (node.kind == NodeKind::switch_ && node.reduce);
  }
}

double greatest_GBps(const Link& link) {
  double most = link.bandwidth_GBps;
  for (const BandwidthStep& step : link.bandwidth_steps) most = std::max(most, step.GBps);
  return most;
}

void scale_bandwidth(Link& link, double factor) {
  link.bandwidth_GBps *= factor;
  for (BandwidthStep& step : link.bandwidth_steps) step.GBps *= factor;
}

Topology with_switch_forwarding(const Topology& topology, Forwarding forwarding) {
  TopologyData data = topology.data();
  for (Node& node : data.nodes) {
    if (node.kind == NodeKind::switch_) node.forwarding = forwarding;
  }
  return Topology(std::move(data));
}

}  // namespace rondo
