#include "fabric_graph.hpp"

#include <algorithm>
#include <set>

namespace rondo {
namespace {

/// Kinds of the links between two nodes, one way and the other; sorted.
struct Joint {
  std::vector<int> there;
  std::vector<int> back;
  auto operator<=>(const Joint&) const = default;
  bool is_even() const { return there == back; }
};

class Encoder {
 public:
  Encoder(const Topology& topology, const DemandPattern& pattern)
      : topology_(topology), pattern_(pattern), kind_(link_kinds(topology)) {
    std::set<LinkId> grouped;
    for (const SharedBandwidth& group : topology.shared_bandwidth())
      grouped.insert(group.links.begin(), group.links.end());
    grouped_.assign(grouped.begin(), grouped.end());
    for (std::size_t l = 0; l < topology.num_links(); ++l) {
      if (grouped.contains(LinkId{l})) continue;
      const Link& link = topology.links()[l];
      const bool forwards = link.src < link.dst;
      Joint& joint = joints_[std::minmax(link.src.value, link.dst.value)];
      (forwards ? joint.there : joint.back).push_back(kind_[l]);
    }
    for (auto& [ends, joint] : joints_) {
      std::sort(joint.there.begin(), joint.there.end());
      std::sort(joint.back.begin(), joint.back.end());
    }
  }

  ColouredGraph build(const std::vector<int>& label) {
    graph_.colour = node_colours(label);
    add_joints();
    add_groups();
    for (const DemandPattern::Arc& arc : pattern_.arcs) {
      std::vector<int> heads;
      for (const GpuId d : arc.destinations) heads.push_back(topology_.node_of(d).value);
      add_arc(vertex_colour({kDemand, static_cast<double>(arc.kind)}), topology_.node_of(arc.origin).value,
              heads);
    }
    return std::move(graph_);
  }

 private:
  enum Part { kNode, kJoint, kGroup, kGrouped, kDemand };

  int vertex_colour(std::vector<double> key) {
    return colours_.try_emplace(std::move(key), static_cast<int>(colours_.size())).first->second;
  }

  /// Own figures and those of the links around, so that the most frequent ways of being joined need no
  /// vertices.
  std::vector<int> node_colours(const std::vector<int>& label) {
    std::vector<std::vector<std::vector<double>>> around(topology_.num_nodes());
    for (std::size_t l = 0; l < topology_.num_links(); ++l) {
      const Link& link = topology_.links()[l];
      around[link.src.index()].push_back({0, static_cast<double>(kind_[l])});
      around[link.dst.index()].push_back({1, static_cast<double>(kind_[l])});
    }
    std::vector<int> colour;
    for (std::size_t n = 0; n < topology_.num_nodes(); ++n) {
      const GpuId gpu = topology_.gpu_of(NodeId{n});
      std::vector<double> key{kNode, label.empty() ? 0.0 : label[n],
                              gpu.valid() ? pattern_.gpu_kind[gpu.index()] : -1.0};
      for (const double figure : node_figures(topology_.nodes()[n])) key.push_back(figure);
      std::sort(around[n].begin(), around[n].end());
      for (const auto& link : around[n]) key.insert(key.end(), link.begin(), link.end());
      colour.push_back(vertex_colour(std::move(key)));
    }
    return colour;
  }

  void add_joints() {
    const auto colour = [&](int n) { return graph_.colour[static_cast<std::size_t>(n)]; };
    const auto colours = [&](std::pair<int, int> ends) {
      return std::minmax({colour(ends.first), colour(ends.second)});
    };
    // Ways that are uneven never are plain edges.
    std::map<std::pair<int, int>, std::map<Joint, int>> count;
    for (const auto& [ends, joint] : joints_) {
      if (joint.is_even()) ++count[colours(ends)][joint];
    }
    std::map<std::pair<int, int>, Joint> plain;
    for (const auto& [pair, joints] : count) {
      plain[pair] = std::max_element(joints.begin(), joints.end(), [](const auto& a, const auto& b) {
                      return a.second < b.second;
                    })->first;
    }
    std::map<Joint, int> number;
    for (const auto& [ends, joint] : joints_)
      number.try_emplace(upright(joint), static_cast<int>(number.size()));
    for (const auto& [ends, joint] : joints_) {
      const auto found = plain.find(colours(ends));
      const int kind = number.at(upright(joint));
      if (found != plain.end() && found->second == joint) {
        graph_.edges.emplace_back(ends.first, ends.second);
      } else if (joint.is_even()) {
        const int middle = add_vertex(vertex_colour({kJoint, static_cast<double>(kind)}));
        graph_.edges.emplace_back(ends.first, middle);
        graph_.edges.emplace_back(middle, ends.second);
      } else {
        const bool turned = upright(joint) != joint;
        add_arc(vertex_colour({kJoint, static_cast<double>(kind)}), turned ? ends.second : ends.first,
                {turned ? ends.first : ends.second});
      }
    }
  }

  /// Of the two ways to look at it the lesser one.
  static Joint upright(const Joint& joint) { return std::min(joint, Joint{joint.back, joint.there}); }

  void add_groups() {
    std::map<LinkId, int> tail;
    for (const LinkId l : grouped_) {
      const Link& link = topology_.link(l);
      tail[l] = add_arc(vertex_colour({kGrouped, static_cast<double>(kind_[l.index()])}), link.src.value,
                        {link.dst.value});
    }
    for (const SharedBandwidth& group : topology_.shared_bandwidth()) {
      const int vertex = add_vertex(vertex_colour({kGroup, group.bandwidth_GBps}));
      for (const LinkId l : group.links) graph_.edges.emplace_back(tail.at(l), vertex);
    }
  }

  int add_vertex(int colour) {
    graph_.colour.push_back(colour);
    return static_cast<int>(graph_.colour.size()) - 1;
  }
  /// A tail and a head; returns the tail.
  int add_arc(int colour, int from, const std::vector<int>& to) {
    const int tail = add_vertex(2 * colour + kFirstArcColour);
    const int head = add_vertex(2 * colour + kFirstArcColour + 1);
    graph_.edges.emplace_back(from, tail);
    graph_.edges.emplace_back(tail, head);
    for (const int n : to) graph_.edges.emplace_back(head, n);
    return tail;
  }
  static constexpr int kFirstArcColour = 1 << 28;

  const Topology& topology_;
  const DemandPattern& pattern_;
  std::vector<int> kind_;  ///< per link
  std::vector<LinkId> grouped_;
  std::map<std::pair<int, int>, Joint> joints_;  ///< by node numbers, the lesser one first
  ColouredGraph graph_;
  std::map<std::vector<double>, int> colours_;
};

}  // namespace

std::vector<double> node_figures(const Node& node) {
  if (node.kind == NodeKind::gpu) return {};
  return {node.multicast ? 1.0 : 0.0, node.reduce ? 1.0 : 0.0,
          node.forwarding == Forwarding::cut_through ? 1.0 : 0.0, node.buffer_bytes};
}

bool alike(const Link& a, const Link& b) {
  return a.bandwidth_GBps == b.bandwidth_GBps && a.latency_us == b.latency_us &&
         a.message_us == b.message_us && a.bandwidth_steps == b.bandwidth_steps;
}

std::vector<int> link_kinds(const Topology& topology) {
  std::map<std::vector<double>, int> kind_of;
  std::vector<std::map<std::vector<double>, int>::iterator> entries;
  for (const Link& link : topology.links()) {
    std::vector<double> figures{link.bandwidth_GBps, link.latency_us, link.message_us};
    for (const BandwidthStep& step : link.bandwidth_steps) {
      figures.push_back(step.from_us);
      figures.push_back(step.GBps);
    }
    entries.push_back(kind_of.try_emplace(std::move(figures)).first);
  }
  int next = 0;
  for (auto& [figures, number] : kind_of) number = next++;
  std::vector<int> kinds;
  for (const auto& entry : entries) kinds.push_back(entry->second);
  return kinds;
}

LinkImages::LinkImages(const Topology& topology) : topology_(topology), kind_(link_kinds(topology)) {
  for (std::size_t l = 0; l < topology.num_links(); ++l) {
    const Link& link = topology.links()[l];
    std::vector<LinkId>& parallel = links_[{link.src, link.dst, kind_[l]}];
    rank_.push_back(parallel.size());
    parallel.emplace_back(l);
  }
}

std::optional<Permutation> LinkImages::with_links(std::vector<NodeId> nodes) const {
  Permutation p{std::move(nodes), {}};
  p.link.reserve(topology_.num_links());
  for (std::size_t l = 0; l < topology_.num_links(); ++l) {
    const Link& link = topology_.links()[l];
    const auto found = links_.find({p.node[link.src.index()], p.node[link.dst.index()], kind_[l]});
    if (found == links_.end() || rank_[l] >= found->second.size()) return std::nullopt;
    p.link.push_back(found->second[rank_[l]]);
  }
  return p;
}

ColouredGraph fabric_graph(const Topology& topology, const DemandPattern& pattern,
                           const std::vector<int>& label) {
  return Encoder(topology, pattern).build(label);
}

}  // namespace rondo
