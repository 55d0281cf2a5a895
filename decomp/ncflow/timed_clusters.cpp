#include "timed_clusters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <tuple>

#include "clusters.hpp"
#include "combined_figures.hpp"
#include "inside_problem.hpp"
#include "rondo/core/error.hpp"
#include "rondo/decomp/flow_paths.hpp"
#include "rondo/decomp/timed_graph.hpp"

namespace rondo {
namespace {

/// So much of the demand is more than can be delivered.
constexpr double kSurplus = 4;
/// Of what is missing between clusters, rounding errors.
constexpr double kRounding = 1e-9;

class TimedClusters {
 public:
  TimedClusters(const Instance& instance, const std::vector<int>& cluster_of_gpu)
      : whole_(instance),
        topology_(*instance.topology),
        bounds_(interval_bounds(instance)),
        cluster_(clusters_of_nodes(topology_, cluster_of_gpu)),
        inside_(static_cast<std::size_t>(num_clusters(cluster_))) {
    find_longest_paths();
    for (const Contribution& c : instance.demand.contributions()) {
      const NodeId src = topology_.node_of(c.origin);
      const NodeId dst = topology_.node_of(c.destinations.front());
      double& ready = inside_of(src).ready_us[src];
      ready = std::max(ready, c.ready_us);
      if (cluster_of(src) == cluster_of(dst)) {
        inside_of(src).local[{src, dst}] += c.bytes;
      } else {
        between_[{cluster_of(src), cluster_of(dst)}][{src, dst}] += c.bytes;
      }
    }
  }

  bool has_traffic_between() const { return !between_.empty(); }

  Instance contracted() {
    Piece& piece = contracted_ = {};
    for (std::size_t c = 0; c < inside_.size(); ++c) piece.add(Node{});
    for (std::size_t n = 0; n < cluster_.size(); ++n) {
      const NodeId node{n};
      piece.node[node] = cluster_[n] >= 0 ? NodeId{cluster_[n]} : piece.add(topology_.node(node));
    }
    for (std::size_t l = 0; l < topology_.num_links(); ++l) {
      Link link = topology_.links()[l];
      if (piece.node[link.src] == piece.node[link.dst]) continue;
      link.latency_us += longest_path(link.dst) * tau_us();
      piece.add(LinkId{l}, link);
    }
    double all = 0;
    std::vector<Contribution> contributions;
    for (const auto& [ends, pairs] : between_) {
      Contribution& c = contributions.emplace_back(Contribution{GpuId{ends.first}, 0, {GpuId{ends.second}}});
      for (const auto& [pair, bytes] : pairs) {
        c.bytes += kSurplus * bytes;
        const double ready = inside_of(pair.first).ready_us.at(pair.first);
        c.ready_us = std::max(c.ready_us, ready + longest_path(pair.first) * tau_us());
      }
      all += c.bytes;
    }
    return instance_of(whole_, piece,
                       Demand(Collective::custom, all, inside_.size(), std::move(contributions), 1));
  }

  /// Deals the traffic between clusters out to the paths of their flow. `contracted`: as above.
  void route_between(const Instance& contracted, const FlowField& field) {
    const Topology& topology = *contracted.topology;
    const std::vector<int> landing = flow_landing_epochs(topology, tau_us());
    for (std::size_t l = 0; l < landing.size(); ++l) {
      const LinkId link = contracted_.link[l];
      delay_[link] = landing[l] - longest_path(topology_.link(link).dst);
    }
    std::map<int, std::vector<Sink>> sinks;
    for (const Contribution& c : contracted.demand.contributions())
      sinks[c.origin.value].push_back({c.destinations.front().value, c.bytes});
    for (auto& [from, wanted] : sinks) {
      TimedGraph timed(topology, bounds_);
      for (const FlowField::Entry& entry : field.entries) {
        if (entry.commodity == from) timed.add_flow(entry);
      }
      timed.add_waiting(NodeId{from});
      std::vector<int> to;
      for (Sink& sink : wanted) {
        to.push_back(sink.node);
        sink.node = timed.node(NodeId{sink.node}, bounds_.back());
      }
      const auto paths = decompose_flow(timed.graph(), timed.flow(), timed.node(NodeId{from}, 0), wanted);
      for (std::size_t k = 0; k < to.size(); ++k) {
        double all = 0;
        for (const FlowPath& path : paths[k]) all += path.amount;
        for (const FlowPath& path : paths[k]) {
          std::vector<Crossing> crossings;
          for (const int a : path.arcs) {
            if (const FlowField::Entry* e = timed.entry(a))
              crossings.push_back({contracted_.link[e->link.index()], e->epoch, e->from, e->to});
          }
          take_path({from, to[k]}, crossings, path.amount / all);
        }
      }
    }
  }

  /// Of the clusters with data, in their order.
  std::vector<InsideProblem> insides() const {
    std::vector<InsideProblem> problems;
    for (std::size_t c = 0; c < inside_.size(); ++c) {
      if (!inside_[c].is_empty())
        problems.push_back(inside_problem(whole_, cluster_, static_cast<int>(c), inside_[c], delay_));
    }
    return problems;
  }

  void route_inside(const InsideProblem& problem, const FlowField& field) {
    std::map<GpuId, std::vector<const FlowField::Entry*>> brought_in;
    for (const FlowField::Entry& entry : field.entries) {
      const GpuId gpu{entry.commodity};
      const auto own = problem.gpu.find(gpu);
      if (own != problem.gpu.end()) {
        carry(own->second, problem.piece.link[entry.link.index()], entry, entry.amount);
      } else {
        brought_in[gpu].push_back(&entry);
      }
    }
    for (const auto& [gpu, entries] : brought_in) deal_out(problem, gpu, entries);
  }

  std::vector<FlowField::Entry> entries() const {
    std::vector<FlowField::Entry> all;
    for (const auto& [key, amount] : load_) {
      const auto& [origin, crossing, lands] = key;
      all.push_back({origin.value, crossing.link, crossing.epoch, amount, lands, crossing.from, crossing.to});
    }
    return all;
  }

 private:
  double tau_us() const { return whole_.grid->tau_us; }
  int cluster_of(NodeId n) const { return cluster_[n.index()]; }
  Inside& inside_of(NodeId n) { return inside_[static_cast<std::size_t>(cluster_of(n))]; }
  /// Epochs from where data enters the node's cluster to anywhere in it; 0 between clusters.
  int longest_path(NodeId n) const {
    return cluster_of(n) < 0 ? 0 : longest_path_[static_cast<std::size_t>(cluster_of(n))];
  }
  int interval_of(int epoch) const {
    return *std::prev(std::upper_bound(bounds_.begin(), bounds_.end(), epoch));
  }

  void find_longest_paths() {
    longest_path_.assign(inside_.size(), 0);
    Digraph inner{static_cast<int>(topology_.num_nodes()), {}};
    std::vector<double> length;
    const std::vector<int> landing = flow_landing_epochs(topology_, tau_us());
    for (std::size_t l = 0; l < topology_.num_links(); ++l) {
      const Link& link = topology_.links()[l];
      if (cluster_of(link.src) != cluster_of(link.dst)) continue;
      inner.arcs.push_back({link.src.value, link.dst.value});
      length.push_back(landing[l]);
    }
    for (std::size_t n = 0; n < cluster_.size(); ++n) {
      if (cluster_[n] < 0) continue;
      const ShortestPaths paths = shortest_paths(inner, length, static_cast<int>(n));
      int& longest = longest_path_[static_cast<std::size_t>(cluster_[n])];
      for (std::size_t m = 0; m < cluster_.size(); ++m) {
        if (cluster_[m] != cluster_[n] || !topology_.is_gpu(NodeId{m})) continue;
        if (!std::isfinite(paths.distance[m])) {
          throw Error(ExitCode::unavailable,
                      fmt::format("ncflow: no path from node {} to node {} stays in their cluster {}; use "
                                  "--decompose pop",
                                  n, m, cluster_[n]));
        }
        longest = std::max(longest, static_cast<int>(paths.distance[m]));
      }
    }
  }

  /// All pairs of GPUs of two clusters put the same share of their data on a path between these.
  void take_path(std::pair<int, int> clusters, const std::vector<Crossing>& crossings, double share) {
    const auto& pairs = between_.at(clusters);
    Shares by_origin;
    for (const auto& [pair, bytes] : pairs) {
      by_origin[topology_.gpu_of(pair.first)] += share * bytes;
      inside_of(pair.first).out[{pair.first, crossings.front()}] += share * bytes;
      const NodeId last = topology_.link(crossings.back().link).dst;
      inside_of(last).in[pair.second][crossings.back()][topology_.gpu_of(pair.first)] += share * bytes;
    }
    for (std::size_t i = 0; i < crossings.size(); ++i) {
      const Crossing& crossing = crossings[i];
      const Link& link = topology_.link(crossing.link);
      const int lands = interval_of(crossing.from + delay_.at(crossing.link));
      for (const auto& [origin, bytes] : by_origin) {
        load_[{origin, crossing, lands}] += bytes;
        if (i > 0 && cluster_of(link.src) >= 0)
          inside_of(link.src).in[crossing][crossings[i - 1]][origin] += bytes;
      }
    }
  }

  /// Flows of what others brought in, by the origins of what took each path.
  void deal_out(const InsideProblem& problem, GpuId gpu,
                const std::vector<const FlowField::Entry*>& entries) {
    const Topology& topology = *problem.instance.topology;
    const Goal& goal = problem.goal.at(gpu);
    const NodeId origin = topology.node_of(gpu);
    TimedGraph timed(topology, bounds_);
    for (const FlowField::Entry* entry : entries) timed.add_flow(*entry);
    std::map<int, const Shares*> entered;  // by arc
    double all = 0;
    const int cluster = cluster_of_piece(problem);
    for (const auto& [crossing, shares] : inside_[static_cast<std::size_t>(cluster)].in.at(goal)) {
      const NodeId head = problem.piece.node.at(topology_.link(crossing.link).dst);
      const int lands = crossing.from + delay_.at(crossing.link);
      entered[timed.add_arc(timed.node(origin, 0), timed.node(head, lands), sum_of(shares))] = &shares;
      all += sum_of(shares);
    }
    timed.add_waiting(origin);
    const Crossing* exit = std::get_if<Crossing>(&goal);
    const int sink = exit ? timed.node(problem.piece.node.at(topology_.link(exit->link).src), exit->from)
                          : timed.node(problem.piece.node.at(std::get<NodeId>(goal)), bounds_.back());
    const auto paths = decompose_flow(timed.graph(), timed.flow(), timed.node(origin, 0), {{sink, all}});
    for (const FlowPath& path : paths.front()) {
      const Shares& shares = *entered.at(path.arcs.front());
      const double whole = sum_of(shares);
      for (const int a : path.arcs) {
        const FlowField::Entry* entry = timed.entry(a);
        if (entry == nullptr) continue;
        const LinkId link = problem.piece.link[entry->link.index()];
        for (const auto& [whose, bytes] : shares) carry(whose, link, *entry, path.amount * bytes / whole);
      }
    }
  }

  int cluster_of_piece(const InsideProblem& problem) const {
    return cluster_of(problem.piece.node.begin()->first);
  }

  void carry(GpuId origin, LinkId link, const FlowField::Entry& entry, double amount) {
    load_[{origin, Crossing{link, entry.epoch, entry.from, entry.to}, entry.lands}] += amount;
  }

  const Instance& whole_;
  const Topology& topology_;
  std::vector<int> bounds_;
  std::vector<int> cluster_;  ///< per node, -1 between clusters
  std::vector<Inside> inside_;
  std::vector<int> longest_path_;
  std::map<std::pair<int, int>, std::map<std::pair<NodeId, NodeId>, double>> between_;
  Piece contracted_;
  std::map<LinkId, int> delay_;  ///< epochs, of links between clusters
  std::map<std::tuple<GpuId, Crossing, int>, double> load_;
};

}  // namespace

SolvedFlow timed_flow_by_clusters(const Instance& instance, const std::vector<int>& cluster_of_gpu,
                                  const SolveFlows& solve) {
  TimedClusters clusters(instance, cluster_of_gpu);
  std::vector<SolvedFlow> solved;  // the objective of each: minus the share of its demand that is delivered
  if (clusters.has_traffic_between()) {
    const Instance contracted = clusters.contracted();
    solved = solve({contracted});
    SolvedFlow& between = solved.front();
    if (between.status != SolveStatus::optimal) return combined_figures(solved);
    between.objective = std::max(-1.0, kSurplus * between.objective);
    // Else there are too few epochs whatever the clusters do.
    if (between.objective > -1 + kRounding) return combined_figures(solved);
    clusters.route_between(contracted, between.field);
    between.field = {};
  }
  const std::vector<InsideProblem> insides = clusters.insides();
  std::vector<Instance> parts;
  for (const InsideProblem& inside : insides) parts.push_back(inside.instance);
  const std::size_t first = solved.size();
  std::ranges::move(solve(parts), std::back_inserter(solved));
  SolvedFlow all = combined_figures(solved);
  if (all.status != SolveStatus::optimal) return all;
  for (std::size_t i = 0; i < insides.size(); ++i) clusters.route_inside(insides[i], solved[first + i].field);
  all.field.entries = clusters.entries();
  return all;
}

}  // namespace rondo
