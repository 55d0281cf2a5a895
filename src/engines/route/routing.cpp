#include "routing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "grown_trees.hpp"
#include "rondo/core/index.hpp"
#include "rondo/model/linear_model.hpp"

namespace rondo {
namespace {

constexpr int kMostWholeColumns = 6'000;  ///< of a program that CBC gets anywhere with
constexpr double kHorizon = 100;          ///< of the program's times: CBC's tolerances are absolute
constexpr double kPeersWeight = 0.01;     ///< of a peer, in the time of the fastest way (TACCL)
constexpr double kChosen = 0.5;

/// Rows that are equal stand once.
class Program {
 public:
  LinearModel model;

  using Terms = std::map<int, double>;
  void add_row(const Terms& terms, double lower, double upper) {
    std::vector<std::pair<int, double>> entries;
    for (const auto& [column, value] : terms) {
      if (value != 0) entries.emplace_back(column, value);
    }
    if (entries.empty() || !known_.insert({entries, {lower, upper}}).second) return;
    const int row = model.add_row(lower, upper);
    for (const auto& [column, value] : entries) model.add_entry(row, column, value);
  }

 private:
  std::set<std::pair<std::vector<std::pair<int, double>>, std::pair<double, double>>> known_;
};

class RoutingProgram {
 public:
  RoutingProgram(const RouteGraph& graph, const Demand& demand, const RouteOrbits& orbits, double horizon_us)
      : graph_(graph), demand_(demand), orbits_(orbits), unit_us_(horizon_us / kHorizon) {
    for (std::size_t c = 0; c < demand.num_chunks(); ++c)
      allowed_.push_back(graph.allowed(demand, ChunkId(c)));
    // What one of an orbit may not take none of it takes.
    std::set<std::size_t> forbidden;
    for_each_way([&](ChunkId c, int w, bool is_allowed) {
      if (!is_allowed) forbidden.insert(orbits.of_way(c, w));
    });
    for_each_way([&](ChunkId c, int w, bool is_allowed) {
      const std::size_t orbit = orbits_.of_way(c, w);
      if (is_allowed && !forbidden.contains(orbit)) sent_.try_emplace(orbit, -1);
    });
  }

  int num_whole() const { return static_cast<int>(sent_.size()); }

  void build() {
    finish_ = program_.model.add_column(0, kHorizon, 1);
    for (auto& [orbit, column] : sent_) column = program_.model.add_column(0, 1, 0, true);
    for (std::size_t c = 0; c < demand_.num_chunks(); ++c) add_chunk(ChunkId(c));
    add_loads();
    add_peers();
    add_local_balance();
  }

  /// The trees as a point of the program; nothing where it has no such point.
  std::optional<std::vector<double>> start_of(const RouteTrees& trees) const {
    if (balance_ >= 0) return std::nullopt;
    std::vector<double> x(static_cast<std::size_t>(program_.model.num_columns()), 0);
    // Images start together: what one of them waits for all do.
    bool changes = true;
    while (changes) {
      changes = false;
      for (std::size_t c = 0; c < trees.size(); ++c) {
        for (const int w : trees[c]) {
          const int column = column_of(ChunkId(c), w);
          if (column < 0) return std::nullopt;
          x[index(column)] = 1;
          const Way& way = graph_.way(w);
          const int before = known_start(ChunkId(c), way.src);
          double& start = x[index(known_start(ChunkId(c), way.dst))];
          const double at = (before < 0 ? 0 : x[index(before)]) + time_of(ChunkId(c), w);
          if (at <= start) continue;
          if (at > kHorizon) return std::nullopt;
          start = at;
          changes = true;
        }
      }
    }
    double& finish = x[index(finish_)];
    for (const auto& [orbit, column] : start_) finish = std::max(finish, x[index(column)]);
    for (const Program::Terms& terms : loads_) {
      double load = 0;
      for (const auto& [column, value] : terms) load += value * x[index(column)];
      finish = std::max(finish, load);
    }
    for (const auto& [column, members] : peers_) {
      for (const int m : members) x[index(column)] = std::max(x[index(column)], x[index(m)]);
    }
    return x;
  }

  const LinearModel& model() const { return program_.model; }

  /// The ways that are chosen, from the source outwards, without what leads to no destination.
  RouteTrees trees_of(const std::vector<double>& x) const {
    RouteTrees trees;
    for (std::size_t c = 0; c < demand_.num_chunks(); ++c) {
      std::vector<int> last(demand_.num_gpus(), -1);
      std::vector<GpuId> reached{demand_.origin(ChunkId(c))};
      for (std::size_t i = 0; i < reached.size(); ++i) {
        for (const int w : graph_.out_of(reached[i])) {
          const int column = column_of(ChunkId(c), w);
          const GpuId to = graph_.way(w).dst;
          if (column < 0 || x[index(column)] < kChosen || to == reached.front() || last[to.index()] >= 0)
            continue;
          last[to.index()] = w;
          reached.push_back(to);
        }
      }
      std::vector<char> is_needed(demand_.num_gpus(), 0);
      for (const GpuId d : demand_.destinations(ChunkId(c))) is_needed[d.index()] = 1;
      std::vector<int> tree;
      for (std::size_t i = reached.size(); i-- > 1;) {
        const int w = last[reached[i].index()];
        if (is_needed[reached[i].index()] == 0) continue;
        is_needed[graph_.way(w).src.index()] = 1;
        tree.push_back(w);
      }
      std::ranges::reverse(tree);
      trees.push_back(std::move(tree));
    }
    return trees;
  }

 private:
  template <class Visit>
  void for_each_way(const Visit& visit) const {
    for (std::size_t c = 0; c < demand_.num_chunks(); ++c) {
      for (std::size_t w = 0; w < graph_.ways().size(); ++w)
        visit(ChunkId(c), static_cast<int>(w), allowed_[c][w] != 0);
    }
  }

  int column_of(ChunkId c, int w) const {
    if (allowed_[c.index()][index(w)] == 0) return -1;
    const auto sent = sent_.find(orbits_.of_way(c, w));
    return sent == sent_.end() ? -1 : sent->second;
  }
  double time_of(ChunkId c, int w) const { return graph_.hop_of(w).duration_us(demand_.bytes(c)) / unit_us_; }

  /// -1: the source, which has it at 0.
  int known_start(ChunkId c, GpuId g) const {
    return g == demand_.origin(c) ? -1 : start_.at(orbits_.of_gpu(c, g));
  }
  int start_column(ChunkId c, GpuId g) {
    if (g == demand_.origin(c)) return -1;
    const auto [start, is_new] = start_.try_emplace(orbits_.of_gpu(c, g), -1);
    if (is_new) start->second = program_.model.add_column(0, kHorizon, 0);
    return start->second;
  }

  void add_chunk(ChunkId c) {
    std::vector<std::vector<int>> into(demand_.num_gpus());
    for (std::size_t w = 0; w < graph_.ways().size(); ++w) {
      if (column_of(c, static_cast<int>(w)) >= 0)
        into[graph_.ways()[w].dst.index()].push_back(static_cast<int>(w));
    }
    const auto destinations = demand_.destinations(c);
    for (std::size_t g = 0; g < into.size(); ++g) {
      const GpuId gpu(g);
      if (gpu == demand_.origin(c)) continue;
      const bool wants = std::ranges::binary_search(destinations, gpu);
      Program::Terms once;
      for (const int w : into[g]) once[column_of(c, w)] += 1;
      program_.add_row(once, wants ? 1 : 0, 1);
      if (wants) program_.add_row({{finish_, 1}, {start_column(c, gpu), -1}}, 0, kInfinity);
      for (const int w : into[g]) {
        const GpuId src = graph_.way(w).src;
        // At `gpu` a way after `src`: far from binding where the way is not taken.
        Program::Terms after{{start_column(c, gpu), 1.0}};
        if (const int before = start_column(c, src); before >= 0) after[before] -= 1;
        after[column_of(c, w)] -= kHorizon;
        program_.add_row(after, time_of(c, w) - kHorizon, kInfinity);
        if (src == demand_.origin(c)) continue;
        Program::Terms held;
        held[column_of(c, w)] -= 1;
        for (const int before : into[src.index()]) held[column_of(c, before)] += 1;
        program_.add_row(held, 0, kInfinity);
      }
    }
  }

  /// Time of all that a link, or links that share bandwidth, carry.
  void add_loads() {
    const Topology& topology = graph_.topology();
    std::vector<Program::Terms> on_link(topology.num_links());
    for_each_way([&](ChunkId c, int w, bool) {
      const int column = column_of(c, w);
      if (column < 0) return;
      const Way& way = graph_.way(w);
      for (const int h : way.hops) {
        for (const HopLink& part : graph_.table().hop(h).links) {
          on_link[part.link.index()][column] +=
              part.load_us(demand_.bytes(c)) / static_cast<double>(way.hops.size()) / unit_us_;
        }
      }
    });
    std::vector<Program::Terms> all = on_link;
    for (const SharedBandwidth& group : topology.shared_bandwidth()) {
      Program::Terms sum;
      for (const LinkId l : group.links) {
        for (const auto& [column, time] : on_link[l.index()])
          sum[column] += time * topology.link(l).bandwidth_GBps / group.bandwidth_GBps;
      }
      all.push_back(std::move(sum));
    }
    for (Program::Terms& terms : all) {
      Program::Terms row{{finish_, 1}};
      for (const auto& [column, time] : terms) row[column] -= time;
      program_.add_row(row, 0, kInfinity);
      loads_.push_back(std::move(terms));
    }
  }

  void add_peers() {
    double fastest = kInfinity;
    for (std::size_t w = 0; w < graph_.ways().size(); ++w)
      fastest = std::min(fastest, time_of(ChunkId{0}, static_cast<int>(w)));
    for (std::size_t w = 0; w < graph_.ways().size(); ++w) {
      const Sketch::Peers policy = graph_.ways()[w].peers;
      if (policy == Sketch::Peers::any) continue;
      const double cost = (policy == Sketch::Peers::few ? 1 : -1) * kPeersWeight * fastest;
      const auto [known, is_new] = peer_columns_.try_emplace(orbits_.of_peers(static_cast<int>(w)), -1);
      if (!is_new) {
        program_.model.cost[index(known->second)] += cost;
        continue;
      }
      known->second = program_.model.add_column(0, 1, cost, true);
      std::set<int> members;
      for (std::size_t c = 0; c < demand_.num_chunks(); ++c) {
        if (const int column = column_of(ChunkId(c), static_cast<int>(w)); column >= 0)
          members.insert(column);
      }
      Program::Terms any{{known->second, -1}};
      for (const int m : members) {
        any[m] += 1;
        program_.add_row({{known->second, 1}, {m, -1}}, 0, kInfinity);
      }
      program_.add_row(any, 0, kInfinity);
      peers_.emplace_back(known->second, std::vector<int>(members.begin(), members.end()));
    }
  }

  /// minmax: the busiest link within a node has little to do; maxmin: the idlest has much.
  void add_local_balance() {
    if (graph_.sketch() == nullptr) return;
    const Sketch::Local local = graph_.sketch()->local;
    if (local != Sketch::Local::minmax && local != Sketch::Local::maxmin) return;
    const bool least = local == Sketch::Local::minmax;
    balance_ = program_.model.add_column(0, kHorizon, least ? kPeersWeight : -kPeersWeight);
    for (std::size_t w = 0; w < graph_.ways().size(); ++w) {
      if (graph_.ways()[w].leaves_node) continue;
      Program::Terms row{{balance_, 1}};
      for (std::size_t c = 0; c < demand_.num_chunks(); ++c) {
        const int column = column_of(ChunkId(c), static_cast<int>(w));
        if (column >= 0) row[column] -= time_of(ChunkId(c), static_cast<int>(w));
      }
      program_.add_row(row, least ? 0 : -kInfinity, least ? kInfinity : 0);
    }
  }

  const RouteGraph& graph_;
  const Demand& demand_;
  const RouteOrbits& orbits_;
  double unit_us_;
  std::vector<std::vector<char>> allowed_;
  std::map<std::size_t, int> sent_;   ///< columns by orbit
  std::map<std::size_t, int> start_;  ///< the same, of (chunk, GPU)
  std::map<std::size_t, int> peer_columns_;
  std::vector<std::pair<int, std::vector<int>>> peers_;  ///< column, and those of which it is the greatest
  std::vector<Program::Terms> loads_;                    ///< of links and groups
  int finish_ = -1;
  int balance_ = -1;
  Program program_;
};

/// As the program counts: no exclusion on links.
double relaxed_finish_us(const RouteGraph& graph, const Demand& demand, const RouteTrees& trees) {
  WayLoads loads(graph);
  double finish_us = 0;
  for (std::size_t c = 0; c < trees.size(); ++c) {
    std::vector<double> at_us(demand.num_gpus(), 0);
    for (const int w : trees[c]) {
      const double bytes = demand.bytes(ChunkId(c));
      const Way& way = graph.way(w);
      at_us[way.dst.index()] = at_us[way.src.index()] + graph.hop_of(w).duration_us(bytes);
      finish_us = std::max(finish_us, at_us[way.dst.index()]);
      loads.add(w, bytes);
    }
  }
  return std::max(finish_us, loads.most_us());
}

bool reaches_all(const RouteGraph& graph, const Demand& demand, const RouteTrees& trees) {
  for (std::size_t c = 0; c < trees.size(); ++c) {
    std::set<GpuId> reached;
    for (const int w : trees[c]) reached.insert(graph.way(w).dst);
    for (const GpuId d : demand.destinations(ChunkId(c))) {
      if (!reached.contains(d)) return false;
    }
  }
  return true;
}

}  // namespace

Routing route_chunks(const RouteGraph& graph, const Demand& demand, const RouteOrbits& orbits,
                     const Solver& milp, const SolveLimits& limits) {
  bool is_symmetric = true;
  Routing routing{grown_trees(graph, demand, orbits, is_symmetric), "grown one after another"};
  const double grown_us = relaxed_finish_us(graph, demand, routing.trees);
  RoutingProgram program(graph, demand, orbits, 2 * grown_us);
  if (program.num_whole() > kMostWholeColumns) {
    routing.origin += fmt::format(" ({} whole columns are more than CBC is given)", program.num_whole());
    return routing;
  }
  program.build();
  routing.columns = program.num_whole();
  const auto start = is_symmetric ? program.start_of(routing.trees) : std::nullopt;
  const bool is_start = start && max_violation(program.model(), *start) <= kFeasibilityTolerance;
  const Solution solution = milp.solve(program.model(), limits, is_start ? &*start : nullptr);
  routing.nodes = solution.nodes;
  if (solution.x.empty()) return routing;
  RouteTrees trees = program.trees_of(solution.x);
  if (!reaches_all(graph, demand, trees)) return routing;
  routing.trees = std::move(trees);
  routing.origin =
      solution.status == SolveStatus::optimal ? "of the routing program, optimal" : "of the routing program";
  return routing;
}

}  // namespace rondo
