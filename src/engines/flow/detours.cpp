#include "detours.hpp"

#include <algorithm>
#include <limits>
#include <queue>

namespace rondo {
namespace {

/// Between two GPUs.
constexpr std::size_t kMostPaths = 8;
constexpr int kFar = std::numeric_limits<int>::max() / 2;

class PathsWithDetours {
 public:
  PathsWithDetours(const Topology& topology, NodeId src, NodeId dst)
      : topology_(topology), src_(src), dst_(dst), links_to_(topology.num_nodes(), kFar) {
    measure();
  }

  std::vector<std::vector<LinkId>> run(std::size_t most) {
    most_ = most;
    const int fewest = links_to_[src_.index()];
    for (int links = fewest; fewest < kFar && links <= fewest + 1; ++links) extend(src_, links);
    return std::move(found_);
  }

 private:
  /// The fewest links from every node to the destination.
  void measure() {
    std::queue<NodeId> open;
    links_to_[dst_.index()] = 0;
    for (open.push(dst_); !open.empty(); open.pop()) {
      for (const LinkId l : topology_.in_links(open.front())) {
        const NodeId from = topology_.link(l).src;
        if (links_to_[from.index()] < kFar) continue;
        links_to_[from.index()] = links_to_[open.front().index()] + 1;
        if (!topology_.is_gpu(from)) open.push(from);
      }
    }
  }

  /// Goes on from `at` over exactly so many links.
  void extend(NodeId at, int links) {
    if (at == dst_ && links == 0) found_.push_back(path_);
    if (at == dst_ || (topology_.is_gpu(at) && at != src_)) return;
    for (const LinkId l : topology_.out_links(at)) {
      const NodeId next = topology_.link(l).dst;
      if (found_.size() >= most_) return;
      if (links_to_[next.index()] > links - 1 || visits(next)) continue;
      path_.push_back(l);
      extend(next, links - 1);
      path_.pop_back();
    }
  }
  bool visits(NodeId node) const {
    return node == src_ ||
           std::ranges::any_of(path_, [&](LinkId l) { return topology_.link(l).dst == node; });
  }

  const Topology& topology_;
  NodeId src_;
  NodeId dst_;
  std::vector<int> links_to_;
  std::size_t most_ = 0;
  std::vector<LinkId> path_;
  std::vector<std::vector<LinkId>> found_;
};

}  // namespace

RouteTable routes_with_detours(const Topology& topology, const Demand& demand) {
  RouteBuilder builder(topology, demand);
  for (std::size_t i = 0; i < demand.contributions().size(); ++i) {
    const Contribution& c = demand.contributions()[i];
    PathsWithDetours search(topology, topology.node_of(c.origin), topology.node_of(c.destinations.front()));
    for (const auto& path : search.run(kMostPaths)) builder.add(i, path, 0);
  }
  return builder.build();
}

}  // namespace rondo
