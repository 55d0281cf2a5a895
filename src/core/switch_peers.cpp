#include "rondo/core/switch_peers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "link_copies.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/index.hpp"

namespace rondo {
namespace {

class PeerRestriction {
 public:
  PeerRestriction(const Topology& topology, int peers)
      : topology_(topology), peers_(peers), image_(topology.num_nodes()), links_(topology.num_links()) {}

  Topology run() {
    bool has_switch = false;
    for (std::size_t n = 0; n < topology_.num_nodes(); ++n) {
      has_switch = has_switch || !topology_.is_gpu(NodeId(n));
      if (is_restricted(NodeId(n))) continue;
      image_[n] = NodeId(data_.nodes.size());
      data_.nodes.push_back(topology_.node(NodeId(n)));
    }
    if (!has_switch) {
      throw Error(ExitCode::usage, fmt::format("--peers is about switches, and '{}' has none; leave it out",
                                               topology_.name()));
    }
    for (std::size_t l = 0; l < topology_.num_links(); ++l) {
      const Link& link = topology_.link(LinkId(l));
      const NodeId src = image_[link.src.index()], dst = image_[link.dst.index()];
      if (src.value >= 0 && dst.value >= 0) add_link(LinkId(l), src, dst);
    }
    for (const NodeId hub : restricted_) copy_for_each_sender(hub);
    data_.shared_bandwidth = shared_by_copies(topology_, links_);
    data_.name = fmt::format("{}+peers={}", topology_.name(), peers_);
    data_.source = topology_.source();
    return Topology(std::move(data_));
  }

 private:
  std::set<GpuId> gpus_of(NodeId hub) const {
    std::set<GpuId> gpus;
    for (const LinkId l : topology_.out_links(hub)) gpus.insert(topology_.gpu_of(topology_.link(l).dst));
    for (const LinkId l : topology_.in_links(hub)) gpus.insert(topology_.gpu_of(topology_.link(l).src));
    return gpus;
  }

  bool is_restricted(NodeId n) {
    if (topology_.is_gpu(n)) return false;
    const std::set<GpuId> gpus = gpus_of(n);
    const bool joins_switches = !gpus.empty() && gpus.begin()->value < 0;
    if (!joins_switches && std::ssize(gpus) - 1 <= peers_) return false;
    const Node& node = topology_.node(n);
    const auto changes = [&](LinkId l) { return !topology_.link(l).bandwidth_steps.empty(); };
    const bool has_steps = std::ranges::any_of(topology_.out_links(n), changes);
    if (joins_switches || node.reduce || has_steps) {
      throw Error(
          ExitCode::unavailable,
          fmt::format("--peers {}: switch {}{} {}, and --peers is for switches that join GPUs alone, copy "
                      "and keep their bandwidth; leave it out",
                      peers_, n.value, node.name.empty() ? "" : " (" + node.name + ")",
                      joins_switches ? "is linked with a switch"
                      : node.reduce  ? "adds ('reduce')"
                                     : "has a link whose bandwidth changes"));
    }
    restricted_.push_back(n);
    return true;
  }

  void copy_for_each_sender(NodeId hub) {
    const std::set<GpuId> set = gpus_of(hub);
    const std::vector<GpuId> gpus(set.begin(), set.end());
    const auto count = static_cast<int>(gpus.size());
    const std::vector<int> distances = peer_distances(count, peers_);
    for (int i = 0; i < count; ++i) {
      std::set<GpuId> heard_by;
      for (const int distance : distances) heard_by.insert(gpus[index((i + distance) % count)]);
      Node copy = topology_.node(hub);
      const std::string& sender = topology_.node(topology_.node_of(gpus[index(i)])).name;
      if (!copy.name.empty())
        copy.name += "/" + (sender.empty() ? std::to_string(gpus[index(i)].value) : sender);
      const NodeId here(data_.nodes.size());
      data_.nodes.push_back(std::move(copy));
      for (const LinkId l : topology_.in_links(hub)) {
        const NodeId src = topology_.link(l).src;
        if (topology_.gpu_of(src) == gpus[index(i)]) add_link(l, image_[src.index()], here);
      }
      for (const LinkId l : topology_.out_links(hub)) {
        const NodeId dst = topology_.link(l).dst;
        if (heard_by.contains(topology_.gpu_of(dst))) add_link(l, here, image_[dst.index()]);
      }
    }
  }

  void add_link(LinkId l, NodeId src, NodeId dst) {
    Link image = topology_.link(l);
    image.src = src;
    image.dst = dst;
    links_[l.index()].emplace_back(data_.links.size());
    data_.links.push_back(std::move(image));
  }

  const Topology& topology_;
  int peers_;
  std::vector<NodeId> image_;               ///< per node; none for restricted switches
  std::vector<std::vector<LinkId>> links_;  ///< per link: its copies
  std::vector<NodeId> restricted_;
  TopologyData data_;
};

}  // namespace

std::vector<int> peer_distances(int gpus, int peers) {
  const auto digits_suffice = [&](int base) {
    std::int64_t names = 1;
    for (int digit = 0; digit < peers && names < gpus; ++digit) names *= base;
    return names >= gpus;
  };
  int base = 2;
  while (!digits_suffice(base)) ++base;
  std::set<int> distances;
  for (std::int64_t distance = 1; distance < gpus && std::ssize(distances) < peers; distance *= base)
    distances.insert(static_cast<int>(distance));
  for (int distance = 1; distance < gpus && std::ssize(distances) < peers; ++distance)
    distances.insert(distance);
  return {distances.begin(), distances.end()};
}

Topology with_switch_peers(const Topology& topology, int peers) {
  return PeerRestriction(topology, peers).run();
}

}  // namespace rondo
