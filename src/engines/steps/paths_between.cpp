#include "paths_between.hpp"

#include <algorithm>

#include "rondo/core/index.hpp"
#include "rondo/model/linear_model.hpp"

namespace rondo {
namespace {

constexpr double kSameSpeed = 1e-9;  ///< relative difference by rounding
/// Different bandwidths that are told apart; of more, so many from the fastest to the slowest.
constexpr std::size_t kMostSpeeds = 8;

/// GPUs send from copies of their nodes, behind those of the topology, so that no path goes on from one.
Digraph switch_graph(const Topology& topology) {
  Digraph graph = topology.graph();
  graph.num_nodes += static_cast<int>(topology.num_gpus());
  for (std::size_t l = 0; l < topology.num_links(); ++l) {
    const NodeId src = topology.links()[l].src;
    if (topology.is_gpu(src))
      graph.arcs[l].src = static_cast<int>(topology.num_nodes()) + topology.gpu_of(src).value;
  }
  return graph;
}

/// That a byte takes over links that others on its way may keep, each once, ascending.
std::vector<double> different_us(const Topology& topology, const LinkRows& rows) {
  std::vector<double> all;
  for (std::size_t l = 0; l < topology.num_links(); ++l) {
    if (rows.may_be_kept(LinkId(l))) all.push_back(rows.us(static_cast<int>(l)));
  }
  std::ranges::sort(all);
  const auto same = [](double a, double b) { return b <= a * (1 + kSameSpeed); };
  all.erase(std::unique(all.begin(), all.end(), same), all.end());
  return all;
}

}  // namespace

bool speeds_differ(const Topology& topology) {
  return different_us(topology, LinkRows(topology)).size() > 1;
}

PathsBetween::PathsBetween(const Topology& topology, const std::vector<GpuId>& members, LinkUse use)
    : topology_(topology), members_(members), rows_(topology), search_(switch_graph(topology)) {
  if (use == LinkUse::shared) return;
  const std::vector<double> all = different_us(topology, rows_);
  if (all.empty()) return;
  are_cheapest_ = all.size() <= kMostSpeeds;
  slowest_us_.clear();
  const std::size_t count = std::min(all.size(), kMostSpeeds);
  for (std::size_t i = 1; i <= count; ++i) slowest_us_.push_back(all[i * all.size() / count - 1]);
}

std::vector<std::vector<double>> PathsBetween::costs(const std::vector<double>& price) {
  const std::size_t n = members_.size();
  std::vector<std::vector<double>> cost(n, std::vector<double>(n, kInfinity));
  last_arc_.clear();
  found_by_.assign(n, std::vector<std::size_t>(n, 0));
  for (const double slowest_us : slowest_us_) {
    std::vector<double> length = rows_.link_costs(price, slowest_us);
    for (std::size_t l = 0; l < length.size() && slowest_us > 0; ++l) {
      if (rows_.may_be_kept(LinkId(l)) && rows_.us(static_cast<int>(l)) > slowest_us * (1 + kSameSpeed))
        length[l] = kInfinity;
    }
    add_paths(length, cost);
  }
  return cost;
}

void PathsBetween::add_paths(const std::vector<double>& length, std::vector<std::vector<double>>& cost) {
  search_.set_lengths(length);
  const std::size_t search = last_arc_.size();
  last_arc_.emplace_back();
  for (std::size_t m = 0; m < members_.size(); ++m) {
    ShortestPaths paths = search_.from(source_of(members_[m]));
    for (std::size_t to = 0; to < members_.size(); ++to) {
      const double distance = paths.distance[topology_.node_of(members_[to]).index()];
      if (!(distance < cost[m][to])) continue;
      cost[m][to] = distance;
      found_by_[m][to] = search;
    }
    last_arc_.back().push_back(std::move(paths.last_arc));
  }
}

std::vector<std::vector<double>> PathsBetween::costs_both_ways(const std::vector<double>& price) {
  const auto one_way = costs(price);
  auto both = one_way;
  for (std::size_t a = 0; a < both.size(); ++a) {
    for (std::size_t b = 0; b < both.size(); ++b) both[a][b] += one_way[b][a];
  }
  return both;
}

std::vector<LinkId> PathsBetween::path(int from, int to) const {
  std::vector<LinkId> links;
  const std::vector<int>& last = last_arc_[found_by_[index(from)][index(to)]][index(from)];
  NodeId node = topology_.node_of(members_[index(to)]);
  for (int arc = last[node.index()]; arc >= 0;) {
    const LinkId link{arc};
    links.push_back(link);
    const NodeId src = topology_.link(link).src;
    arc = topology_.is_gpu(src) ? -1 : last[src.index()];
  }
  std::ranges::reverse(links);
  return links;
}

}  // namespace rondo
