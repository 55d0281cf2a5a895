#include "rondo/core/sketch.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "link_copies.hpp"
#include "refuse.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/hops.hpp"
#include "rondo/core/index.hpp"
#include "rondo/core/sketched_fabric.hpp"

namespace rondo {
namespace {

/// Switches that links between switches join, and the nodes (of the sketch) of their GPUs.
struct SwitchGroup {
  std::vector<NodeId> switches = {};
  std::set<int> nodes = {};
};

class Restriction {
 public:
  Restriction(const Topology& topology, const Sketch& sketch)
      : topology_(topology),
        sketch_(sketch),
        gpus_(gpus_of_nodes(topology, sketch.nodes)),
        place_(topology.num_gpus()),
        images_(topology.num_links()),
        group_of_(topology.num_nodes(), -1) {
    for (std::size_t n = 0; n < gpus_.size(); ++n) {
      for (std::size_t i = 0; i < gpus_[n].size(); ++i)
        place_[gpus_[n][i].index()] = {static_cast<int>(n), static_cast<int>(i)};
    }
  }

  SketchedFabric run() {
    find_groups();
    check_local_switches();
    // GPUs keep their numbers; switches follow.
    std::vector<NodeId> node_image(topology_.num_nodes());
    for (std::size_t g = 0; g < topology_.num_gpus(); ++g) {
      const NodeId n = topology_.node_of(GpuId(g));
      node_image[n.index()] = add_node(n, "");
    }
    for (const SwitchGroup& group : groups_) {
      if (is_network(group)) continue;
      for (const NodeId n : group.switches) node_image[n.index()] = add_node(n, "");
    }
    for (std::size_t l = 0; l < topology_.num_links(); ++l) {
      const Link& link = topology_.links()[l];
      if (stays(link)) add_link(LinkId(l), node_image[link.src.index()], node_image[link.dst.index()], 1);
    }
    for (const SwitchGroup& group : groups_) {
      if (is_network(group)) add_network(group, node_image);
    }
    check_connections();
    data_.shared_bandwidth = shared_by_copies(topology_, images_);
    data_.name = topology_.name() + "+sketch";
    data_.source = topology_.source();
    std::vector<LinkId> originals(data_.links.size());
    for (std::size_t l = 0; l < images_.size(); ++l) {
      for (const LinkId image : images_[l]) originals[image.index()] = LinkId(l);
    }
    return {Topology(std::move(data_)), std::move(originals)};
  }

 private:
  struct Place {
    int node;
    int local;
  };
  Place place(GpuId g) const { return place_[g.index()]; }
  bool is_network(const SwitchGroup& group) const { return group.nodes.size() > 1 && sketch_.nodes > 1; }
  bool is_gpu(NodeId n) const { return topology_.is_gpu(n); }

  /// Whether a GPU may send to another, as far as the sketch says.
  bool may_send(GpuId from, GpuId to) const {
    if (place(from).node == place(to).node || !sketch_.conn) return true;
    const auto known = sketch_.conn->find(place(from).local);
    return known != sketch_.conn->end() &&
           std::ranges::find(known->second, place(to).local) != known->second.end();
  }

  void find_groups() {
    for (std::size_t n = 0; n < topology_.num_nodes(); ++n) {
      const NodeId first(n);
      if (is_gpu(first) || group_of_[n] >= 0) continue;
      const auto number = static_cast<int>(groups_.size());
      groups_.emplace_back();
      std::vector<NodeId> open{first};
      group_of_[n] = number;
      while (!open.empty()) {
        const NodeId at = open.back();
        open.pop_back();
        groups_.back().switches.push_back(at);
        const auto visit = [&](NodeId next) {
          if (is_gpu(next)) {
            groups_.back().nodes.insert(place(topology_.gpu_of(next)).node);
          } else if (group_of_[next.index()] < 0) {
            group_of_[next.index()] = number;
            open.push_back(next);
          }
        };
        for (const LinkId l : topology_.out_links(at)) visit(topology_.link(l).dst);
        for (const LinkId l : topology_.in_links(at)) visit(topology_.link(l).src);
      }
      std::ranges::sort(groups_.back().switches);
    }
  }

  /// What a switch of the sketch joins has to be joined.
  void check_local_switches() const {
    for (std::size_t s = 0; s < sketch_.switches.size(); ++s) {
      const std::vector<int>& members = sketch_.switches[s];
      for (const auto& node : gpus_) {
        for (const int a : members) {
          if (a >= static_cast<int>(node.size())) {
            refuse(fmt::format("intranode_sketch.switches[{}] names GPU {}; a node of '{}' has 0 to {}", s, a,
                               topology_.name(), node.size() - 1));
          }
          for (const int b : members) {
            if (a != b && !are_joined(node[index(a)], node[index(b)])) {
              refuse(
                  fmt::format("intranode_sketch.switches[{}] joins GPUs {} and {}, which neither a link nor "
                              "a switch joins in a node of '{}'; name GPUs that are joined",
                              s, a, b, topology_.name()));
            }
          }
        }
      }
    }
  }
  bool are_joined(GpuId a, GpuId b) const {
    for (const LinkId l : topology_.out_links(topology_.node_of(a))) {
      const NodeId next = topology_.link(l).dst;
      if (next == topology_.node_of(b)) return true;
      if (is_gpu(next)) continue;
      for (const LinkId in : topology_.in_links(topology_.node_of(b))) {
        const NodeId last = topology_.link(in).src;
        if (!is_gpu(last) && group_of_[last.index()] == group_of_[next.index()]) return true;
      }
    }
    return false;
  }

  NodeId add_node(NodeId n, const std::string& suffix) {
    data_.nodes.push_back(topology_.node(n));
    if (!suffix.empty()) data_.nodes.back().name += suffix;
    return NodeId(data_.nodes.size() - 1);
  }
  void add_link(LinkId l, NodeId src, NodeId dst, int parts) {
    Link link = topology_.link(l);
    link.src = src;
    link.dst = dst;
    if (parts > 1) scale_bandwidth(link, 1.0 / parts);
    images_[l.index()].push_back(LinkId(data_.links.size()));
    data_.links.push_back(std::move(link));
  }

  /// Links within a node, and those between GPUs of two that the sketch lets be used.
  bool stays(const Link& link) const {
    const auto in_network = [&](NodeId n) {
      return !is_gpu(n) && is_network(groups_[index(group_of_[n.index()])]);
    };
    if (in_network(link.src) || in_network(link.dst)) return false;
    if (!is_gpu(link.src) || !is_gpu(link.dst)) return true;
    const GpuId from = topology_.gpu_of(link.src);
    const GpuId to = topology_.gpu_of(link.dst);
    if (!may_send(from, to)) return false;
    if (place(from).node != place(to).node) connected_.insert({from, to});
    return true;
  }

  /// Senders of a node with the same receivers, by these.
  std::map<std::vector<int>, std::vector<int>> kinds_of_senders() const {
    std::map<std::vector<int>, std::vector<int>> kinds;
    if (sketch_.conn) {
      for (const auto& [sender, receivers] : *sketch_.conn) kinds[receivers].push_back(sender);
      return kinds;
    }
    std::vector<int> all;
    for (std::size_t i = 0; i < gpus_.front().size(); ++i) all.push_back(static_cast<int>(i));
    kinds[all] = all;
    return kinds;
  }

  /// The switches of the group for the senders of one node and kind, without what leads to no receiver.
  void add_network(const SwitchGroup& group, std::vector<NodeId>& node_image) {
    for (const int node : group.nodes) {
      for (const auto& [receivers, senders] : kinds_of_senders()) {
        std::set<NodeId> from, to;
        for (const int s : senders) from.insert(topology_.node_of(gpus_[index(node)][index(s)]));
        for (const int other : group.nodes) {
          for (const int r : receivers) {
            if (other != node) to.insert(topology_.node_of(gpus_[index(other)][index(r)]));
          }
        }
        const std::set<NodeId> ahead = reached(from, group, true);
        const std::set<NodeId> behind = reached(to, group, false);
        const std::string suffix = fmt::format(".n{}s{}", node, senders.front());
        for (const NodeId n : group.switches) {
          node_image[n.index()] = {};
          if (ahead.contains(n) && behind.contains(n)) node_image[n.index()] = add_node(n, suffix);
        }
        add_links_of(from, to, group, node_image);
        // A cut-through switch leads on whatever enters it: who is ahead reaches whoever is behind.
        for (const NodeId s : from) {
          const std::set<NodeId> own = reached({s}, group, true);
          for (const NodeId r : to) {
            const std::set<NodeId> ways = reached({r}, group, false);
            if (std::ranges::any_of(own, [&](NodeId n) { return ways.contains(n); }))
              connected_.insert({topology_.gpu_of(s), topology_.gpu_of(r)});
          }
        }
      }
    }
  }

  /// Switches of the group that lead on from, or to, some of the GPUs.
  std::set<NodeId> reached(const std::set<NodeId>& gpus, const SwitchGroup& group, bool forwards) const {
    std::set<NodeId> found;
    std::vector<NodeId> open(gpus.begin(), gpus.end());
    while (!open.empty()) {
      const NodeId at = open.back();
      open.pop_back();
      for (const LinkId l : forwards ? topology_.out_links(at) : topology_.in_links(at)) {
        const NodeId next = forwards ? topology_.link(l).dst : topology_.link(l).src;
        if (is_gpu(next) || group_of_[next.index()] != group_of_[group.switches.front().index()]) continue;
        if (found.insert(next).second) open.push_back(next);
      }
    }
    return found;
  }

  void add_links_of(const std::set<NodeId>& from, const std::set<NodeId>& to, const SwitchGroup& group,
                    const std::vector<NodeId>& node_image) {
    const auto is_here = [&](NodeId n) {
      return !is_gpu(n) && group_of_[n.index()] == group_of_[group.switches.front().index()] &&
             node_image[n.index()].valid();
    };
    for (std::size_t l = 0; l < topology_.num_links(); ++l) {
      const Link& link = topology_.links()[l];
      if ((!is_here(link.src) && !from.contains(link.src)) || (!is_here(link.dst) && !to.contains(link.dst)))
        continue;
      if (is_gpu(link.src) && is_gpu(link.dst)) continue;
      int parts = 1;
      if (is_gpu(link.src)) {
        const auto split = sketch_.bandwidth_parts.find(place(topology_.gpu_of(link.src)).local);
        if (split != sketch_.bandwidth_parts.end()) parts = split->second;
      }
      add_link(LinkId(l), node_image[link.src.index()], node_image[link.dst.index()], parts);
    }
  }

  void check_connections() const {
    if (!sketch_.conn) return;
    for (const auto& [sender, receivers] : *sketch_.conn) {
      for (const int r : receivers) {
        for (std::size_t a = 0; a < gpus_.size(); ++a) {
          for (std::size_t b = 0; b < gpus_.size(); ++b) {
            if (a == b || connected_.contains({gpus_[a][index(sender)], gpus_[b][index(r)]})) continue;
            refuse(fmt::format(
                "internode_sketch.internode_conn lets GPU {} send to GPU {} of other nodes, but in "
                "'{}' no link or switch leads from GPU {} to GPU {}; leave the pair out",
                sender, r, topology_.name(), gpus_[a][index(sender)].value, gpus_[b][index(r)].value));
          }
        }
      }
    }
  }

  const Topology& topology_;
  const Sketch& sketch_;
  std::vector<std::vector<GpuId>> gpus_;  ///< by node
  std::vector<Place> place_;              ///< per GPU
  std::vector<std::vector<LinkId>> images_;
  std::vector<int> group_of_;  ///< per node of the topology; -1 for GPUs
  std::vector<SwitchGroup> groups_;
  mutable std::set<std::pair<GpuId, GpuId>> connected_;  ///< pairs of GPUs of two nodes
  TopologyData data_;
};

}  // namespace

SketchedFabric sketched_fabric(const Topology& topology, const Sketch& sketch) {
  return Restriction(topology, sketch).run();
}

Topology restricted(const Topology& topology, const Sketch& sketch) {
  return sketched_fabric(topology, sketch).topology;
}

}  // namespace rondo
