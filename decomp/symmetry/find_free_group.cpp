#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "digit_automorphisms.hpp"
#include "fabric_graph.hpp"

namespace rondo {
namespace {

/// Elements that generate larger groups than those before, which the listing looks at.
constexpr int kMaxAttempts = 256;
/// Nodes of all listed elements together.
constexpr std::size_t kMaxListedNodes = 64'000'000;
/// Of the logarithm of a group's order.
constexpr double kOrderRounding = 1e-9;

using Nodes = std::vector<NodeId>;

Nodes identity_nodes(const Topology& topology) {
  Nodes nodes;
  for (std::size_t n = 0; n < topology.num_nodes(); ++n) nodes.emplace_back(n);
  return nodes;
}

/// Per node the block that it belongs to, or -1 where it is fixed.
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

/// The cyclic shift of the blocks by one: from each block to the next the automorphism that takes the first
/// block there, after the inverse of the one that takes it here. Of the automorphisms that fix all nodes
/// outside of the blocks.
std::optional<Nodes> shift_of(const Topology& topology, const DemandPattern& pattern, const Blocks& block) {
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

/// Different labels for GPUs that are joined with the same nodes in the same way: swaps of them are of no use
/// here and make groups large.
std::vector<int> twin_labels(const Topology& topology) {
  // The other end, whether the link leaves, its kind and its groups of shared bandwidth.
  using End = std::tuple<NodeId, bool, int, std::vector<std::size_t>>;
  std::vector<std::vector<std::size_t>> groups(topology.num_links());
  for (std::size_t i = 0; i < topology.shared_bandwidth().size(); ++i) {
    for (const LinkId l : topology.shared_bandwidth()[i].links) groups[l.index()].push_back(i);
  }
  const std::vector<int> kind = link_kinds(topology);
  std::vector<std::vector<End>> around(topology.num_nodes());
  for (std::size_t l = 0; l < topology.num_links(); ++l) {
    const Link& link = topology.links()[l];
    around[link.src.index()].emplace_back(link.dst, true, kind[l], groups[l]);
    around[link.dst.index()].emplace_back(link.src, false, kind[l], groups[l]);
  }
  std::map<std::vector<End>, int> twins;
  std::vector<int> label(topology.num_nodes(), 0);
  for (std::size_t n = 0; n < around.size(); ++n) {
    std::sort(around[n].begin(), around[n].end());
    if (topology.is_gpu(NodeId{n})) label[n] = ++twins[around[n]];
  }
  return label;
}

/// All products of `generators`, the identity first; nothing where there are more than `most`.
std::optional<std::vector<Nodes>> listed(const Nodes& identity, const std::vector<Permutation>& generators,
                                         std::size_t most) {
  std::vector<Nodes> elements{identity};
  std::set<Nodes> known(elements.begin(), elements.end());
  for (std::size_t i = 0; i < elements.size(); ++i) {
    for (const Permutation& g : generators) {
      Nodes next = elements[i];
      for (NodeId& n : next) n = g.node[n.index()];
      if (!known.insert(next).second) continue;
      if (elements.size() == most) return std::nullopt;
      elements.push_back(std::move(next));
    }
  }
  return elements;
}

/// Whether no GPU and no link is mapped to itself.
bool moves_all(const Topology& topology, const Nodes& image) {
  for (std::size_t g = 0; g < topology.num_gpus(); ++g) {
    const NodeId n = topology.node_of(GpuId{g});
    if (image[n.index()] == n) return false;
  }
  return std::ranges::none_of(topology.links(), [&](const Link& link) {
    return image[link.src.index()] == link.src && image[link.dst.index()] == link.dst;
  });
}

class FreeGroupSearch {
 public:
  FreeGroupSearch(const Topology& topology, const DemandPattern& pattern)
      : topology_(topology), pattern_(pattern), links_(topology) {}

  FreeGroup run() const {
    if (pattern_.irregular || topology_.num_links() > kMaxSymmetryLinks) return FreeGroup::trivial(topology_);
    FreeGroup group = group_of_digits(topology_, pattern_);
    if (group.order() > 1 || topology_.num_gpus() > kMaxSearchedGpus) return group;
    for (const auto& blocks : {chassis_blocks, leaf_blocks, single_blocks}) {
      const auto shift = shift_of(topology_, pattern_, blocks(topology_));
      if (!shift) continue;
      if (auto found = larger({}, *shift)) return std::move(found->group);
    }
    return from_all_elements();
  }

 private:
  struct Generated {
    FreeGroup group;
    std::vector<Permutation> generators;
  };

  /// By the generators and one more; nothing where that acts not freely or is no automorphism.
  std::optional<Generated> larger(std::vector<Permutation> generators, const Nodes& element) const {
    auto p = links_.with_links(element);
    if (!p || !is_automorphism(topology_, pattern_, *p)) return std::nullopt;
    generators.push_back(std::move(*p));
    auto group = FreeGroup::generated_by(topology_, generators);
    if (!group || group->order() == 1) return std::nullopt;
    return Generated{std::move(*group), std::move(generators)};
  }

  FreeGroup from_all_elements() const {
    Generated best{FreeGroup::trivial(topology_), {}};
    const Symmetry symmetry = find_symmetry(topology_, pattern_, twin_labels(topology_));
    const std::size_t most = std::min(kMaxListedElements, kMaxListedNodes / topology_.num_nodes());
    if (symmetry.log10_order > std::log10(static_cast<double>(most)) + kOrderRounding)
      return std::move(best.group);
    const auto elements = listed(identity_nodes(topology_), symmetry.generators, most);
    if (!elements) return std::move(best.group);
    int attempts = 0;
    for (const Nodes& element : *elements) {
      if (best.group.order() == topology_.num_gpus() || attempts == kMaxAttempts) break;
      if (!moves_all(topology_, element)) continue;
      ++attempts;
      auto found = larger(best.generators, element);
      if (found && found->group.order() > best.group.order()) best = std::move(*found);
    }
    return std::move(best.group);
  }

  const Topology& topology_;
  const DemandPattern& pattern_;
  const LinkImages links_;
};

}  // namespace

FreeGroup find_free_group(const Topology& topology, const DemandPattern& pattern) {
  return FreeGroupSearch(topology, pattern).run();
}

}  // namespace rondo
