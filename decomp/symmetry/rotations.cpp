#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "fabric_graph.hpp"
#include "rondo/decomp/orbits.hpp"

namespace rondo {
namespace {

/// Elements that enumeration looks at before it settles for what it has.
constexpr int kMostAttempts = 256;
/// Nodes and links of all members together.
constexpr std::size_t kMostImages = 64'000'000;

using Nodes = std::vector<NodeId>;

/// Which members a group of rotations may have besides the identity: they leave no GPU and no link in its
/// place (links of GPUs move with them), and take no link to one that it shares bandwidth with, so that what
/// one member takes of a group never is another one's.
class RotationRule {
 public:
  explicit RotationRule(const Topology& topology) : topology_(topology), links_(topology) {}

  bool allows(const Nodes& image) const {
    for (std::size_t n = 0; n < image.size(); ++n) {
      if (topology_.is_gpu(NodeId{n}) && image[n].index() == n) return false;
    }
    const bool one_stays =
        std::any_of(topology_.links().begin(), topology_.links().end(), [&](const Link& link) {
          return image[link.src.index()] == link.src && image[link.dst.index()] == link.dst;
        });
    return !one_stays && (topology_.shared_bandwidth().empty() || keeps_groups_apart(image));
  }
  /// Nothing where some link has no counterpart.
  std::optional<Permutation> with_links(const Nodes& image) const { return links_.with_links(image); }

 private:
  bool keeps_groups_apart(const Nodes& image) const {
    const std::optional<Permutation> p = links_.with_links(image);
    if (!p) return false;
    for (const SharedBandwidth& group : topology_.shared_bandwidth()) {
      const std::set<LinkId> links(group.links.begin(), group.links.end());
      for (const LinkId l : group.links) {
        if (links.contains(p->link[l.index()])) return false;
      }
    }
    return true;
  }

  const Topology& topology_;
  LinkImages links_;
};

Nodes identity_nodes(const Topology& topology) {
  Nodes nodes;
  for (std::size_t n = 0; n < topology.num_nodes(); ++n) nodes.emplace_back(n);
  return nodes;
}

/// Nodes that turn together, in the order in which they turn; per node its block, or -1 where it stays.
using Blocks = std::vector<int>;

/// The nodes that each node is linked with.
std::vector<std::set<NodeId>> neighbours(const Topology& topology) {
  std::vector<std::set<NodeId>> around(topology.num_nodes());
  for (const Link& link : topology.links()) {
    around[link.src.index()].insert(link.dst);
    around[link.dst.index()].insert(link.src);
  }
  return around;
}

/// The chassis of GPUs; switches belong where all of their neighbours do.
Blocks chassis_blocks(const Topology& topology) {
  Blocks block(topology.num_nodes(), -1);
  for (std::size_t n = 0; n < block.size(); ++n) {
    if (topology.is_gpu(NodeId{n})) block[n] = topology.nodes()[n].chassis.value_or(-1);
  }
  const auto around = neighbours(topology);
  for (std::size_t n = 0; n < block.size(); ++n) {
    std::set<int> of_neighbours;
    for (const NodeId m : around[n]) of_neighbours.insert(topology.is_gpu(m) ? block[m.index()] : -1);
    if (!topology.is_gpu(NodeId{n}) && of_neighbours.size() == 1) block[n] = *of_neighbours.begin();
  }
  return block;
}

/// GPUs that have one switch for a neighbour and nothing else, with it; other GPUs alone.
Blocks leaf_blocks(const Topology& topology) {
  Blocks block(topology.num_nodes(), -1);
  const auto around = neighbours(topology);
  for (std::size_t n = 0; n < block.size(); ++n) {
    if (!topology.is_gpu(NodeId{n})) continue;
    const NodeId next = *around[n].begin();
    const bool hangs = around[n].size() == 1 && !topology.is_gpu(next);
    block[n] = hangs ? next.value : static_cast<int>(n);
    if (hangs) block[next.index()] = next.value;
  }
  return block;
}

Blocks single_blocks(const Topology& topology) {
  Blocks block(topology.num_nodes(), -1);
  for (std::size_t n = 0; n < block.size(); ++n) {
    if (topology.is_gpu(NodeId{n})) block[n] = static_cast<int>(n);
  }
  return block;
}

/// Every block onto the next one: what a symmetry that takes the first block to one of them does, undone,
/// then what one does that takes it to the next. Symmetries that leave the nodes outside of all blocks in
/// their places.
std::optional<Nodes> rotation(const Topology& topology, const DemandPattern& pattern, const Blocks& block) {
  std::map<int, Nodes> members;
  std::vector<int> label(block.size(), 0);
  for (std::size_t n = 0; n < block.size(); ++n) {
    if (block[n] >= 0) {
      members[block[n]].emplace_back(n);
    } else if (topology.is_gpu(NodeId{n})) {
      return std::nullopt;
    } else {
      label[n] = static_cast<int>(n) + 1;
    }
  }
  if (members.size() < 2) return std::nullopt;
  const Nodes& first = members.begin()->second;
  const Symmetry symmetry = find_symmetry(topology, pattern, label);
  const Transversal transversal(symmetry, first.front());
  std::vector<Nodes> copies;  // of the first block's members
  for (const auto& [number, nodes] : members) {
    const auto target =
        std::find_if(nodes.begin(), nodes.end(), [&](NodeId n) { return transversal.reaches(n); });
    if (nodes.size() != first.size() || target == nodes.end()) return std::nullopt;
    const Permutation element = transversal.element(*target);
    Nodes& copy = copies.emplace_back();
    for (const NodeId n : first) {
      copy.push_back(element.node[n.index()]);
      if (block[copy.back().index()] != number) return std::nullopt;
    }
  }
  Nodes image = identity_nodes(topology);
  for (std::size_t c = 0; c < copies.size(); ++c) {
    const Nodes& next = copies[(c + 1) % copies.size()];
    for (std::size_t i = 0; i < first.size(); ++i) image[copies[c][i].index()] = next[i];
  }
  return image;
}

/// All products of `generators`, the identity first; nothing where there are more than `most`, or where one
/// breaks the rule, if there is one.
std::optional<std::vector<Nodes>> closure(const Nodes& identity, const std::vector<Nodes>& generators,
                                          std::size_t most, const RotationRule* rule) {
  std::vector<Nodes> elements{identity};
  std::set<Nodes> known(elements.begin(), elements.end());
  for (std::size_t i = 0; i < elements.size(); ++i) {
    for (const Nodes& g : generators) {
      Nodes next = elements[i];
      for (NodeId& n : next) n = g[n.index()];
      if (known.contains(next)) continue;
      if (elements.size() == most || (rule != nullptr && !rule->allows(next))) return std::nullopt;
      known.insert(next);
      elements.push_back(std::move(next));
    }
  }
  return elements;
}

/// Different labels for GPUs that are joined with the same nodes in the same way: swaps of them are of no use
/// here and make groups large.
std::vector<int> twin_labels(const Topology& topology) {
  // The other end, whether the link leaves, its figures and its groups of shared bandwidth.
  using End = std::tuple<NodeId, bool, double, double, std::vector<std::size_t>>;
  std::vector<std::vector<std::size_t>> groups(topology.num_links());
  for (std::size_t i = 0; i < topology.shared_bandwidth().size(); ++i) {
    for (const LinkId l : topology.shared_bandwidth()[i].links) groups[l.index()].push_back(i);
  }
  std::vector<std::vector<End>> around(topology.num_nodes());
  for (std::size_t l = 0; l < topology.num_links(); ++l) {
    const Link& link = topology.links()[l];
    around[link.src.index()].emplace_back(link.dst, true, link.bandwidth_GBps, link.latency_us, groups[l]);
    around[link.dst.index()].emplace_back(link.src, false, link.bandwidth_GBps, link.latency_us, groups[l]);
  }
  std::map<std::vector<End>, int> twins;
  std::vector<int> label(topology.num_nodes(), 0);
  for (std::size_t n = 0; n < around.size(); ++n) {
    std::sort(around[n].begin(), around[n].end());
    if (topology.is_gpu(NodeId{n})) label[n] = ++twins[around[n]];
  }
  return label;
}

/// From all elements of a small group, larger and larger subgroups that leave nothing in its place.
std::vector<Nodes> rotations_by_enumeration(const Topology& topology, const DemandPattern& pattern,
                                            const RotationRule& rule) {
  const Nodes identity = identity_nodes(topology);
  std::vector<Nodes> generators;
  for (const Permutation& p : find_symmetry(topology, pattern, twin_labels(topology)).generators)
    generators.push_back(p.node);
  const auto elements = closure(identity, generators,
                                std::min(kMaxListedElements, kMostImages / topology.num_nodes()), nullptr);
  std::vector<Nodes> rotations{identity};
  if (!elements) return rotations;
  std::vector<Nodes> chosen;
  int attempts = 0;
  for (const Nodes& element : *elements) {
    if (rotations.size() == topology.num_gpus() || attempts == kMostAttempts) break;
    if (!rule.allows(element)) continue;
    if (std::find(rotations.begin(), rotations.end(), element) != rotations.end()) continue;
    ++attempts;
    chosen.push_back(element);
    if (auto larger = closure(identity, chosen, topology.num_gpus(), &rule)) {
      rotations = std::move(*larger);
    } else {
      chosen.pop_back();
    }
  }
  return rotations;
}

}  // namespace

std::vector<Permutation> find_rotations(const Topology& topology, const DemandPattern& pattern) {
  const RotationRule rule(topology);
  const Nodes identity_of_nodes = identity_nodes(topology);
  const std::vector<Permutation> identity{*rule.with_links(identity_of_nodes)};
  if (pattern.irregular || topology.num_links() > kMaxSymmetryLinks) return identity;
  const auto checked = [&](const std::vector<Nodes>& group) {
    std::vector<Permutation> members = identity;
    if (group.size() * (topology.num_nodes() + topology.num_links()) > kMostImages) return members;
    for (std::size_t i = 1; i < group.size(); ++i) {
      auto p = rule.with_links(group[i]);
      if (!p || !is_automorphism(topology, pattern, *p) || !rule.allows(p->node)) return identity;
      members.push_back(std::move(*p));
    }
    return members;
  };
  for (const auto& blocks : {chassis_blocks, leaf_blocks, single_blocks}) {
    const auto turn = rotation(topology, pattern, blocks(topology));
    const auto group = turn ? closure(identity_of_nodes, {*turn}, topology.num_gpus(), &rule) : std::nullopt;
    if (!group) continue;
    std::vector<Permutation> members = checked(*group);
    if (members.size() > 1) return members;
  }
  return checked(rotations_by_enumeration(topology, pattern, rule));
}

}  // namespace rondo
