#include "rondo/decomp/orbits.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <tuple>

#include "automorphisms.hpp"
#include "fabric_graph.hpp"
#include "rondo/core/error.hpp"
#include "rondo/graph/union_find.hpp"

namespace rondo {
namespace {

template <class T>
bool is_bijection(const std::vector<T>& image, std::size_t n) {
  if (image.size() != n) return false;
  std::vector<char> hit(n, 0);
  for (const T to : image) {
    if (!to.valid() || to.index() >= n || hit[to.index()]) return false;
    hit[to.index()] = 1;
  }
  return true;
}

bool keeps_groups(const Topology& topology, const Permutation& p) {
  using Group = std::pair<double, std::vector<LinkId>>;
  std::multiset<Group> groups;
  std::multiset<Group> images;
  for (const SharedBandwidth& shared : topology.shared_bandwidth()) {
    Group group{shared.bandwidth_GBps, shared.links};
    Group image = group;
    for (LinkId& l : image.second) l = p.link[l.index()];
    std::sort(group.second.begin(), group.second.end());
    std::sort(image.second.begin(), image.second.end());
    groups.insert(std::move(group));
    images.insert(std::move(image));
  }
  return groups == images;
}

bool keeps_demand(const Topology& topology, const DemandPattern& pattern, const Permutation& p) {
  const auto image = [&](GpuId g) { return topology.gpu_of(p.node[topology.node_of(g).index()]); };
  for (std::size_t g = 0; g < pattern.gpu_kind.size(); ++g) {
    if (pattern.gpu_kind[g] != pattern.gpu_kind[image(GpuId{g}).index()]) return false;
  }
  std::vector<DemandPattern::Arc> images = pattern.arcs;
  for (DemandPattern::Arc& arc : images) {
    arc.origin = image(arc.origin);
    for (GpuId& d : arc.destinations) d = image(d);
    std::sort(arc.destinations.begin(), arc.destinations.end());
  }
  std::sort(images.begin(), images.end());
  return images == pattern.arcs;
}

Permutation identity(const Topology& topology) {
  Permutation p;
  for (std::size_t n = 0; n < topology.num_nodes(); ++n) p.node.emplace_back(n);
  for (std::size_t l = 0; l < topology.num_links(); ++l) p.link.emplace_back(l);
  return p;
}

}  // namespace

Permutation composed(const Permutation& first, const Permutation& then) {
  Permutation p = first;
  for (NodeId& n : p.node) n = then.node[n.index()];
  for (LinkId& l : p.link) l = then.link[l.index()];
  return p;
}

Permutation inverse(const Permutation& permutation) {
  Permutation p = permutation;
  for (std::size_t n = 0; n < p.node.size(); ++n) p.node[permutation.node[n].index()] = NodeId{n};
  for (std::size_t l = 0; l < p.link.size(); ++l) p.link[permutation.link[l].index()] = LinkId{l};
  return p;
}

bool is_automorphism(const Topology& topology, const DemandPattern& pattern, const Permutation& p) {
  if (!is_bijection(p.node, topology.num_nodes()) || !is_bijection(p.link, topology.num_links()))
    return false;
  for (std::size_t n = 0; n < topology.num_nodes(); ++n) {
    const Node& from = topology.nodes()[n];
    const Node& to = topology.node(p.node[n]);
    if (from.kind != to.kind || node_figures(from) != node_figures(to)) return false;
  }
  for (std::size_t l = 0; l < topology.num_links(); ++l) {
    const Link& from = topology.links()[l];
    const Link& to = topology.link(p.link[l]);
    if (p.node[from.src.index()] != to.src || p.node[from.dst.index()] != to.dst || !alike(from, to))
      return false;
  }
  if (pattern.irregular) return p == identity(topology);
  return keeps_groups(topology, p) && keeps_demand(topology, pattern, p);
}

Symmetry find_symmetry(const Topology& topology, const DemandPattern& pattern,
                       const std::vector<int>& label) {
  Symmetry symmetry = trivial_symmetry(topology);
  if (pattern.irregular || topology.num_links() > kMaxSymmetryLinks) return symmetry;
  const LinkImages links_of(topology);
  const Automorphisms found = automorphisms(fabric_graph(topology, pattern, label));
  UnionFind nodes(topology.num_nodes());
  UnionFind links(topology.num_links());
  for (const std::vector<int>& image : found.generators) {
    std::vector<NodeId> image_of_nodes;
    for (std::size_t n = 0; n < topology.num_nodes(); ++n) image_of_nodes.emplace_back(image[n]);
    std::optional<Permutation> p = links_of.with_links(std::move(image_of_nodes));
    // Without one generator the others have other orbits than stabilisers go by.
    if (!p || !is_automorphism(topology, pattern, *p)) return trivial_symmetry(topology);
    if (*p == identity(topology)) continue;
    for (std::size_t n = 0; n < topology.num_nodes(); ++n) nodes.unite(n, p->node[n].index());
    for (std::size_t l = 0; l < topology.num_links(); ++l) links.unite(l, p->link[l].index());
    symmetry.generators.push_back(std::move(*p));
  }
  symmetry.log10_order = found.log10_order;
  symmetry.node_orbit = nodes.numbered();
  symmetry.link_orbit = links.numbered();
  return symmetry;
}

Symmetry find_symmetry(const Topology& topology, const Demand& demand) {
  return find_symmetry(topology, demand_pattern(demand));
}

std::vector<int> pair_orbits(const Symmetry& symmetry, std::size_t nodes) {
  UnionFind pairs(nodes * nodes);
  for (const Permutation& generator : symmetry.generators) {
    for (std::size_t p = 0; p < nodes * nodes; ++p)
      pairs.unite(p, generator.node[p / nodes].index() * nodes + generator.node[p % nodes].index());
  }
  return pairs.numbered();
}

Symmetry trivial_symmetry(const Topology& topology) {
  return {{}, UnionFind(topology.num_nodes()).numbered(), UnionFind(topology.num_links()).numbered()};
}

std::vector<FlowField::Entry> entries_of(const Topology& topology, const Symmetry& symmetry,
                                         const FlowField& field, GpuId origin) {
  const NodeId node = topology.node_of(origin);
  const auto orbit = [&](NodeId n) { return symmetry.node_orbit[n.index()]; };
  const auto node_of = [&](const FlowField::Entry& entry) {
    return topology.node_of(GpuId{entry.commodity});
  };
  std::vector<FlowField::Entry> entries;
  for (const FlowField::Entry& entry : field.entries) {
    if (orbit(node_of(entry)) == orbit(node)) entries.push_back(entry);
  }
  if (entries.empty() || entries.front().commodity == origin.value) return entries;
  const Permutation element = Transversal(symmetry, node_of(entries.front())).element(node);
  for (FlowField::Entry& entry : entries) {
    entry.commodity = origin.value;
    entry.link = element.link[entry.link.index()];
  }
  return entries;
}

Transversal::Transversal(const Symmetry& symmetry, NodeId from)
    : symmetry_(symmetry),
      from_(from),
      step_(symmetry.node_orbit.size(), kUnreached),
      before_(symmetry.node_orbit.size()) {
  step_[from.index()] = -1;
  for (std::deque<NodeId> open{from}; !open.empty(); open.pop_front()) {
    const NodeId at = open.front();
    for (std::size_t g = 0; g < symmetry.generators.size(); ++g) {
      const NodeId to = symmetry.generators[g].node[at.index()];
      if (step_[to.index()] != kUnreached) continue;
      step_[to.index()] = static_cast<int>(g);
      before_[to.index()] = at;
      open.push_back(to);
    }
  }
}

Permutation Transversal::element(NodeId to) const {
  if (!reaches(to))
    throw Error(ExitCode::internal, "a node outside the orbit has no element of the transversal");
  std::vector<const Permutation*> steps;
  for (; to != from_; to = before_[to.index()])
    steps.push_back(&symmetry_.generators[static_cast<std::size_t>(step_[to.index()])]);
  Permutation p;
  for (std::size_t n = 0; n < symmetry_.node_orbit.size(); ++n) p.node.emplace_back(n);
  for (std::size_t l = 0; l < symmetry_.link_orbit.size(); ++l) p.link.emplace_back(l);
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) p = composed(p, **step);
  return p;
}

std::optional<FlowOrbits> flow_orbits(const Topology& topology, const Demand& demand,
                                      const DemandPattern& pattern, const Symmetry& symmetry,
                                      std::size_t most_columns) {
  std::vector<char> sends(topology.num_gpus(), 0);
  for (const Contribution& c : demand.contributions()) sends[c.origin.index()] = 1;
  std::set<int> open;  // orbits of origins without a representative
  for (std::size_t g = 0; g < sends.size(); ++g) {
    if (sends[g]) open.insert(symmetry.node_orbit[topology.node_of(GpuId{g}).index()]);
  }
  // A stabiliser has at least as many orbits as the whole group.
  const auto least = static_cast<std::size_t>(OrbitTable(symmetry.link_orbit).count());
  std::size_t columns = 0;
  FlowOrbits orbits;
  orbits.link_orbit = symmetry.link_orbit;
  std::map<int, std::size_t> origin_of_orbit;
  for (std::size_t g = 0; g < sends.size(); ++g) {
    if (!sends[g]) continue;
    const NodeId node = topology.node_of(GpuId{g});
    const auto [entry, is_new] =
        origin_of_orbit.try_emplace(symmetry.node_orbit[node.index()], orbits.origins.size());
    if (!is_new) {
      ++orbits.origins[entry->second].size;
      continue;
    }
    if (columns + open.size() * least > most_columns) return std::nullopt;
    open.erase(entry->first);
    Symmetry stabiliser = symmetry;
    if (!symmetry.is_trivial()) {
      std::vector<int> label(topology.num_nodes(), 0);
      label[node.index()] = 1;
      stabiliser = find_symmetry(topology, pattern, label);
    }
    orbits.origins.push_back(
        {GpuId{g}, 1, std::move(stabiliser.link_orbit), std::move(stabiliser.node_orbit)});
    columns += static_cast<std::size_t>(OrbitTable(orbits.origins.back().link_orbit).count());
  }
  if (columns > most_columns) return std::nullopt;
  return orbits;
}

}  // namespace rondo
