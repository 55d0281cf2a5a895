#include "period_graph.hpp"

namespace rondo {

PeriodGraph::PeriodGraph(const Topology& topology, std::size_t num_periods)
    : num_periods_(num_periods),
      nodes_each_(topology.num_nodes()),
      links_each_(topology.num_links()),
      out_(num_nodes()),
      in_(num_nodes()) {
  for (std::size_t p = 0; p < num_periods; ++p) {
    for (const Link& link : topology.links()) add(node(link.src, p), node(link.dst, p));
  }
  for (std::size_t n = 0; n + nodes_each_ < num_nodes(); ++n) add(n, n + nodes_each_);
}

void PeriodGraph::add(std::size_t src, std::size_t dst) {
  out_[src].push_back(src_.size());
  in_[dst].push_back(src_.size());
  src_.push_back(src);
  dst_.push_back(dst);
}

}  // namespace rondo
