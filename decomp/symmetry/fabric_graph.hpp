#pragma once

#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "automorphisms.hpp"
#include "rondo/decomp/orbits.hpp"

namespace rondo {

/// Everything about a node, its name and chassis aside, that a renaming has to keep.
std::vector<double> node_figures(const Node& node);

/// Whether two links differ in nothing but their ends.
bool alike(const Link& a, const Link& b);

/// Per link the number of its figures, 0, 1, ... by bandwidth, then latency, then the rest: equal for links
/// that are alike.
std::vector<int> link_kinds(const Topology& topology);

/// Where links go, given where nodes go: parallel links of the same figures in their order.
class LinkImages {
 public:
  explicit LinkImages(const Topology& topology);
  /// Nothing where some link has no counterpart.
  std::optional<Permutation> with_links(std::vector<NodeId> nodes) const;

 private:
  using Key = std::tuple<NodeId, NodeId, int>;
  const Topology& topology_;
  std::vector<int> kind_;  ///< per link
  std::map<Key, std::vector<LinkId>> links_;
  std::vector<std::size_t> rank_;  ///< per link, among its parallels
};

/// A topology, labels of its nodes (or none) and a demand as a small coloured graph with the same
/// automorphisms. Vertices 0 .. num_nodes - 1 are the nodes, coloured by their figures and those of their
/// links. Of the ways in which two nodes of given colours are joined, the most frequent one becomes a plain
/// edge, which the colours of its ends tell apart from all others; other ways get a vertex (the same both
/// ways) or two (a tail and a head), and so do the arcs of the demand and links of shared bandwidth, which
/// are joined with their groups.
ColouredGraph fabric_graph(const Topology& topology, const DemandPattern& pattern,
                           const std::vector<int>& label);

}  // namespace rondo
