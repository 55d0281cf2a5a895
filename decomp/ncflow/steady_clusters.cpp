#include "steady_clusters.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>

#include "clusters.hpp"
#include "combined_figures.hpp"
#include "rondo/decomp/flow_paths.hpp"

namespace rondo {
namespace {

/// What goes from a node to another one, and whose data it is.
using Traffic = std::map<std::pair<NodeId, NodeId>, Shares>;

/// Some of a topology's nodes, contracted or not, as GPUs: in a flow without time switches are no different.
struct ClusterPiece {
  Instance instance;
  std::vector<LinkId> link;        ///< of the topology, per link
  std::map<NodeId, GpuId> number;  ///< of the topology's nodes
};

/// `group`: per node of the topology the node of the piece, or -1; links within a node are left out.
ClusterPiece make_piece(const Topology& topology, const std::vector<int>& group, int nodes,
                        const Traffic& traffic) {
  TopologyData data{topology.name(), "", std::vector<Node>(static_cast<std::size_t>(nodes)), {}, {}};
  std::map<NodeId, GpuId> number;
  for (std::size_t n = 0; n < group.size(); ++n) {
    if (group[n] >= 0) number[NodeId{n}] = GpuId{group[n]};
  }
  std::vector<LinkId> own_links;
  for (std::size_t l = 0; l < topology.num_links(); ++l) {
    Link link = topology.links()[l];
    const int src = group[link.src.index()];
    const int dst = group[link.dst.index()];
    if (src < 0 || dst < 0 || src == dst) continue;
    link.src = NodeId{src};
    link.dst = NodeId{dst};
    data.links.push_back(link);
    own_links.emplace_back(l);
  }
  std::map<std::pair<GpuId, GpuId>, double> bytes;
  double all = 0;
  for (const auto& [ends, shares] : traffic) {
    bytes[{number.at(ends.first), number.at(ends.second)}] += sum_of(shares);
    all += sum_of(shares);
  }
  std::vector<Contribution> contributions;
  for (const auto& [ends, amount] : bytes) contributions.push_back({ends.first, amount, {ends.second}});
  Demand demand(Collective::custom, all, static_cast<std::size_t>(nodes), std::move(contributions), 1);
  return {{std::make_shared<const Topology>(std::move(data)), std::move(demand)},
          std::move(own_links),
          std::move(number)};
}

/// Paths of the piece's flow between each of its pairs, over links of the topology.
using Paths = std::map<std::pair<GpuId, GpuId>, std::vector<std::pair<std::vector<LinkId>, double>>>;

Paths paths_of(const ClusterPiece& piece, const FlowField& field) {
  const Topology& topology = *piece.instance.topology;
  std::map<GpuId, std::vector<double>> flow;
  for (const FlowField::Entry& entry : field.entries) {
    auto& amounts = flow.try_emplace(GpuId{entry.commodity}, topology.num_links(), 0.0).first->second;
    amounts[entry.link.index()] += entry.amount;
  }
  std::map<GpuId, std::vector<Sink>> sinks;
  for (const Contribution& c : piece.instance.demand.contributions())
    sinks[c.origin].push_back({topology.node_of(c.destinations.front()).value, c.bytes});
  Paths paths;
  for (const auto& [origin, wanted] : sinks) {
    const auto found = decompose_flow(topology.graph(), flow[origin], topology.node_of(origin).value, wanted);
    for (std::size_t k = 0; k < wanted.size(); ++k) {
      auto& of_pair = paths[{origin, topology.gpu_of(NodeId{wanted[k].node})}];
      for (const FlowPath& path : found[k]) {
        std::vector<LinkId> links;
        for (const int a : path.arcs) links.push_back(piece.link[static_cast<std::size_t>(a)]);
        of_pair.emplace_back(std::move(links), path.amount / wanted[k].amount);
      }
    }
  }
  return paths;
}

class Clusters {
 public:
  Clusters(const Instance& instance, const std::vector<int>& cluster_of_gpu)
      : topology_(*instance.topology),
        cluster_(clusters_of_nodes(topology_, cluster_of_gpu)),
        count_(num_clusters(cluster_)) {
    inside_.resize(static_cast<std::size_t>(count_));
    for (const Contribution& c : instance.demand.contributions()) {
      const NodeId src = topology_.node_of(c.origin);
      const NodeId dst = topology_.node_of(c.destinations.front());
      const bool local = cluster_of(src) == cluster_of(dst);
      Traffic& traffic = local ? inside_[static_cast<std::size_t>(cluster_of(src))] : between_;
      traffic[{src, dst}][c.origin] += c.bytes;
    }
  }

  /// Nothing where no data leaves its cluster.
  std::optional<ClusterPiece> contracted() const {
    if (between_.empty()) return std::nullopt;
    std::vector<int> group = cluster_;
    int nodes = count_;
    for (int& g : group) {
      if (g < 0) g = nodes++;
    }
    return make_piece(topology_, group, nodes, between_);
  }

  /// Puts the traffic between clusters on the paths of their flow; what that asks of the clusters is added to
  /// what goes on inside them.
  void route_between(const ClusterPiece& contracted, const FlowField& field) {
    const Paths paths = paths_of(contracted, field);
    for (const auto& [ends, shares] : between_) {
      const auto pair = std::pair(contracted.number.at(ends.first), contracted.number.at(ends.second));
      for (const auto& [links, share] : paths.at(pair)) {
        NodeId at = ends.first;
        for (const LinkId l : links) {
          const Link& link = topology_.link(l);
          pass(at, link.src, shares, share);
          carry(l, shares, share);
          at = link.dst;
        }
        pass(at, ends.second, shares, share);
      }
    }
  }

  /// Those of clusters with data, by number.
  std::map<std::size_t, ClusterPiece> insides() const {
    std::map<std::size_t, ClusterPiece> pieces;
    for (int c = 0; c < count_; ++c) {
      const auto number = static_cast<std::size_t>(c);
      if (inside_[number].empty()) continue;
      std::vector<int> group(cluster_.size(), -1);
      int nodes = 0;
      for (std::size_t n = 0; n < group.size(); ++n) {
        if (cluster_[n] == c) group[n] = nodes++;
      }
      pieces.emplace(number, make_piece(topology_, group, nodes, inside_[number]));
    }
    return pieces;
  }

  void route_inside(std::size_t cluster, const ClusterPiece& piece, const FlowField& field) {
    const Paths paths = paths_of(piece, field);
    for (const auto& [ends, shares] : inside_[cluster]) {
      for (const auto& [links, share] : paths.at({piece.number.at(ends.first), piece.number.at(ends.second)}))
        for (const LinkId l : links) carry(l, shares, share);
    }
  }

  std::vector<FlowField::Entry> entries() const {
    std::vector<FlowField::Entry> all;
    for (const auto& [key, amount] : load_) all.push_back({key.first.value, key.second, 0, amount});
    return all;
  }

 private:
  int cluster_of(NodeId n) const { return cluster_[n.index()]; }

  /// From where a path enters a cluster to where it leaves it.
  void pass(NodeId from, NodeId to, const Shares& shares, double share) {
    if (from == to) return;
    Shares& passing = inside_[static_cast<std::size_t>(cluster_of(from))][{from, to}];
    for (const auto& [origin, bytes] : shares) passing[origin] += share * bytes;
  }
  void carry(LinkId link, const Shares& shares, double share) {
    for (const auto& [origin, bytes] : shares) load_[{origin, link}] += share * bytes;
  }

  const Topology& topology_;
  std::vector<int> cluster_;  ///< per node, -1 between clusters
  int count_;
  Traffic between_;
  std::vector<Traffic> inside_;  ///< per cluster
  std::map<std::pair<GpuId, LinkId>, double> load_;
};

}  // namespace

SolvedFlow steady_flow_by_clusters(const Instance& instance, const std::vector<int>& cluster_of_gpu,
                                   const SolveFlows& solve) {
  Clusters clusters(instance, cluster_of_gpu);
  std::vector<SolvedFlow> solved;
  if (const std::optional<ClusterPiece> contracted = clusters.contracted()) {
    solved = solve({contracted->instance});
    if (solved.front().status != SolveStatus::optimal) return combined_figures(solved);
    clusters.route_between(*contracted, solved.front().field);
  }
  const std::map<std::size_t, ClusterPiece> insides = clusters.insides();
  std::vector<Instance> parts;
  for (const auto& [cluster, piece] : insides) parts.push_back(piece.instance);
  const std::size_t first = solved.size();
  std::ranges::move(solve(parts), std::back_inserter(solved));
  SolvedFlow all = combined_figures(solved);
  if (all.status != SolveStatus::optimal) return all;
  auto flow = solved.begin() + static_cast<std::ptrdiff_t>(first);
  for (const auto& [cluster, piece] : insides) clusters.route_inside(cluster, piece, (flow++)->field);
  all.field.entries = clusters.entries();
  return all;
}

}  // namespace rondo
