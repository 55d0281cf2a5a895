#include "switch_trees.hpp"

#include <fmt/format.h>

#include <utility>

#include "rondo/core/error.hpp"
#include "rondo/core/index.hpp"
#include "rondo/core/units.hpp"
#include "rondo/model/linear_model.hpp"

namespace rondo {

SwitchTrees::SwitchTrees(const Topology& topology, Through through)
    : topology_(topology),
      through_(through),
      load_us_(topology.num_links(), 0),
      is_wanted_(topology.num_nodes(), 0) {}

bool SwitchTrees::leads_on(NodeId n) const {
  return !topology_.is_gpu(n) && (through_ == Through::all || topology_.node(n).multicast);
}

std::vector<int> SwitchTrees::links_to_gpus(GpuId origin) {
  find_levels(origin, {});
  std::vector<int> links;
  for (std::size_t g = 0; g < topology_.num_gpus(); ++g)
    links.push_back(level_[topology_.node_of(GpuId{g}).index()]);
  return links;
}

std::vector<LinkTree> SwitchTrees::trees_of(GpuId origin, std::span<const GpuId> destinations, double bytes) {
  find_levels(origin, destinations);
  const std::size_t nodes = topology_.num_nodes();
  std::vector<LinkId> into(nodes);  // of the trees
  for (const GpuId g : destinations) {
    if (level_[topology_.node_of(g).index()] == kNotReached) {
      throw Error(ExitCode::unavailable,
                  fmt::format("GPU {} of '{}' is not reached from GPU {} through switches that copy; use "
                              "another engine",
                              g.value, topology_.name(), origin.value));
    }
    for (NodeId n = topology_.node_of(g); level_[n.index()] > 0 && !into[n.index()].valid();) {
      const LinkId link = best_link(n, into);
      into[n.index()] = link;
      load_us_[link.index()] += transmission_us(bytes, topology_.link(link).bandwidth_GBps);
      n = topology_.link(link).src;
    }
  }
  return split_at_origin(topology_.node_of(origin), into);
}

void SwitchTrees::find_levels(GpuId origin, std::span<const GpuId> destinations) {
  level_.assign(topology_.num_nodes(), kNotReached);
  for (const GpuId g : destinations) is_wanted_[topology_.node_of(g).index()] = 1;
  std::size_t wanted = destinations.empty() ? topology_.num_nodes() : destinations.size();
  const NodeId root = topology_.node_of(origin);
  level_[root.index()] = 0;
  order_ = {root};
  for (std::size_t i = 0; i < order_.size() && wanted > 0; ++i) {
    const NodeId n = order_[i];
    if (n != root && !leads_on(n)) continue;
    for (const LinkId l : topology_.out_links(n)) {
      const NodeId next = topology_.link(l).dst;
      if (level_[next.index()] != kNotReached) continue;
      level_[next.index()] = level_[n.index()] + 1;
      order_.push_back(next);
      if (is_wanted_[next.index()] != 0) --wanted;
    }
  }
  for (const GpuId g : destinations) is_wanted_[topology_.node_of(g).index()] = 0;
}

LinkId SwitchTrees::best_link(NodeId n, const std::vector<LinkId>& into) const {
  LinkId best;
  std::pair least{true, kInfinity};
  for (const LinkId l : topology_.in_links(n)) {
    const NodeId from = topology_.link(l).src;
    const int level = level_[from.index()];
    if (level == kNotReached || level + 1 != level_[n.index()]) continue;
    if (level > 0 && !leads_on(from)) continue;
    const std::pair cost{level > 0 && !into[from.index()].valid(), load_us_[l.index()]};
    if (best.valid() && cost >= least) continue;
    least = cost;
    best = l;
  }
  return best;
}

std::vector<LinkTree> SwitchTrees::split_at_origin(NodeId root, const std::vector<LinkId>& into) const {
  std::vector<LinkTree> trees;
  std::vector<std::pair<int, int>> place(into.size(), {-1, -1});  // per node: tree, link into it
  for (const NodeId n : order_) {
    if (!into[n.index()].valid()) continue;
    const LinkId link = into[n.index()];
    auto [tree, parent] = place[topology_.link(link).src.index()];
    if (topology_.link(link).src == root) {
      tree = static_cast<int>(trees.size());
      trees.emplace_back();
    }
    LinkTree& its = trees[index(tree)];
    place[n.index()] = {tree, static_cast<int>(its.links.size())};
    its.links.push_back(link);
    its.parents.push_back(parent);
  }
  return trees;
}

}  // namespace rondo
