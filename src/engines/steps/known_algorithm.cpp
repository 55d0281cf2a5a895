#include "known_algorithm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "dealing.hpp"
#include "gpu_paths.hpp"
#include "rondo/core/demand_shapes.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/index.hpp"
#include "rondo/engines/plain_allgather.hpp"
#include "task_scheduler.hpp"

namespace rondo {
namespace {

/// More than an algorithm has: chunks of one turn go before those of the next.
constexpr double kStepsOfTurn = 1 << 20;

/// Times the lower bound: where other engines come nearer.
constexpr double kNearItsBound = 1.01;
/// Beyond them finding rings takes longer than others do; in AllGather, where others are quick as well,
/// sooner.
constexpr std::size_t kMostQuickMembers = 64;
constexpr std::size_t kMostQuickMembersOfAllgather = 16;

/// A hop of a tree, and the place in the tree's list of the next one towards the root; -1: none.
struct TreeHop {
  int hop;
  int towards_root;
  int step;
};
using HopTree = std::vector<TreeHop>;

/// Turns messages of an algorithm into tasks.
class KnownTasks {
 public:
  KnownTasks(const KnownAlgorithm& algorithm, const Members& members, const Demand& demand)
      : algorithm_(algorithm),
        members_(members),
        demand_(demand),
        paths_(members.hops, demand.bytes(ChunkId{0})),
        position_(members.topology.num_gpus(), -1) {
    for (std::size_t m = 0; m < members.gpus.size(); ++m)
      position_[members.gpus[m].index()] = static_cast<int>(m);
  }

  void add_all() {
    const auto per_contribution = static_cast<std::size_t>(demand_.chunks_per_contribution());
    const std::vector<std::size_t> channel_of =
        deal(algorithm_.shares,
             demand_.kind() == DemandKind::all_reduction ? demand_.num_chunks() : per_contribution);
    std::vector<int> turn(algorithm_.shares.size(), 0);
    for (std::size_t c = 0; c < demand_.num_chunks(); ++c) {
      const ChunkId chunk(c);
      const Contribution& contribution = demand_.contribution(chunk);
      const auto in_turn = static_cast<int>(c % per_contribution);
      if (contribution.reduce) {
        const auto channel = static_cast<int>(channel_of[c]);
        add_sum(channel, turn[index(channel)]++, chunk);
      } else if (is_spread(contribution)) {
        const auto channel = static_cast<int>(channel_of[index(in_turn)]);
        add_spread(channel, position(demand_.origin(chunk)), chunk, in_turn * kStepsOfTurn, {});
      } else {
        add_route(chunk, in_turn * kStepsOfTurn);
      }
    }
  }

  const TaskGraph& graph() const { return graph_; }
  const std::vector<double>& ranks() const { return rank_; }

  /// Before which the algorithm does not end, in however many chunks: what the busiest link or group has to
  /// carry, and the latencies of the longest path. Sums go evenly to all of an algorithm's roots.
  double least_us() {
    std::vector<double> busy_us(members_.topology.num_links(), 0);
    double longest_us = 0;
    for (const Contribution& contribution : demand_.contributions()) {
      if (!contribution.reduce && !is_spread(contribution)) {
        const HopTree route = route_of(contribution.origin, contribution.destinations.front());
        longest_us = std::max(longest_us, add_loads(route, contribution.bytes, busy_us));
        continue;
      }
      const int turns = contribution.reduce ? members_.count() : 1;
      for (int channel = 0; channel < static_cast<int>(algorithm_.shares.size()); ++channel) {
        const double bytes = algorithm_.shares[index(channel)] * contribution.bytes / turns;
        for (int turn = 0; turn < turns; ++turn) {
          const int root = contribution.reduce ? root_of_sum(channel, turn) : position(contribution.origin);
          double path_us = add_loads(spread_tree(channel, root), bytes, busy_us);
          if (contribution.reduce) path_us += add_loads(gather_tree(channel, root), bytes, busy_us);
          longest_us = std::max(longest_us, path_us);
        }
      }
    }
    return std::max(longest_us, busiest_us(busy_us));
  }

 private:
  /// Returns the latency of the tree's longest path.
  double add_loads(const HopTree& tree, double bytes, std::vector<double>& busy_us) const {
    std::vector<double> far_us(tree.size());
    for (std::size_t i = 0; i < tree.size(); ++i) {
      far_us[i] = hop(tree[i].hop).fixed_us;
      if (tree[i].towards_root >= 0) far_us[i] += far_us[index(tree[i].towards_root)];
      for (const HopLink& part : hop(tree[i].hop).links)
        busy_us[part.link.index()] += part.share * part.us_per_byte * bytes;
    }
    return *std::ranges::max_element(far_us);
  }

  /// The time of the link or group that takes the longest for what its links carry.
  double busiest_us(const std::vector<double>& busy_us) const {
    const Topology& topology = members_.topology;
    double busiest_us = *std::ranges::max_element(busy_us);
    for (const SharedBandwidth& group : topology.shared_bandwidth()) {
      double group_us = 0;
      for (const LinkId l : group.links)
        group_us += busy_us[l.index()] * topology.link(l).bandwidth_GBps / group.bandwidth_GBps;
      busiest_us = std::max(busiest_us, group_us);
    }
    return busiest_us;
  }

  /// Whether all members want it, and the algorithm does that.
  bool is_spread(const Contribution& contribution) const {
    return algorithm_.spread && contribution.destinations.size() + 1 == members_.gpus.size();
  }
  int root_of_sum(int channel, int turn) const {
    return algorithm_.root_of_sum ? algorithm_.root_of_sum(channel, turn) : turn % members_.count();
  }

  int position(GpuId g) const { return position_[g.index()]; }
  GpuId gpu(int member) const { return members_.gpus[index(member)]; }
  const Hop& hop(int h) const { return members_.hops.hop(h); }

  std::vector<int> path(int channel, int from, int to) {
    if (algorithm_.hop) return {algorithm_.hop(channel, from, to)};
    return paths_.between(gpu(from), gpu(to), static_cast<std::size_t>(channel + from + to));
  }

  int add(int hop_number, ChunkId chunk, SendOp op, const std::vector<int>& causes, double rank) {
    const auto [known, is_new] = number_.try_emplace(hop_number, static_cast<int>(graph_.hops.size()));
    if (is_new) graph_.hops.push_back(hop(hop_number));
    rank_.push_back(rank);
    return graph_.add(known->second, chunk, op, causes);
  }

  /// GPUs between members pass data on, and take part in the tree from then on.
  const HopTree& spread_tree(int channel, int root) {
    const auto [known, is_new] = spread_trees_.try_emplace({channel, root});
    HopTree& tree = known->second;
    if (!is_new) return tree;
    std::map<GpuId, int> reached{{gpu(root), -1}};
    for (const StepMessage& message : algorithm_.spread(channel, root)) {
      if (reached.contains(gpu(message.to))) continue;
      const std::vector<int> hops = path(channel, message.from, message.to);
      std::size_t begin = hops.size() - 1;
      while (!reached.contains(hop(hops[begin]).src)) --begin;
      for (std::size_t i = begin; i < hops.size(); ++i) {
        tree.push_back({hops[i], reached.at(hop(hops[i]).src), message.step});
        reached[hop(hops[i]).dst] = static_cast<int>(tree.size()) - 1;
      }
    }
    return tree;
  }

  /// GPUs between members add to what they pass on, once and towards one GPU.
  const HopTree& gather_tree(int channel, int root) {
    const auto [known, is_new] = gather_trees_.try_emplace({channel, root});
    HopTree& tree = known->second;
    if (!is_new) return tree;
    std::map<GpuId, int> joined{{gpu(root), -1}};
    for (const StepMessage& message : gather_messages(channel, root)) {
      if (joined.contains(gpu(message.from))) continue;
      const std::vector<int> hops = path(channel, message.from, message.to);
      std::size_t end = 0;
      while (!joined.contains(hop(hops[end]).dst)) ++end;
      for (std::size_t i = end + 1; i-- > 0;) {
        tree.push_back({hops[i], joined.at(hop(hops[i]).dst), message.step});
        joined[hop(hops[i]).src] = static_cast<int>(tree.size()) - 1;
      }
    }
    return tree;
  }

  StepMessages gather_messages(int channel, int root) const {
    if (algorithm_.gather) return algorithm_.gather(channel, root);
    StepMessages messages = algorithm_.spread(channel, root);
    int last = 0;
    for (const StepMessage& message : messages) last = std::max(last, message.step);
    for (StepMessage& message : messages) message = {message.to, message.from, last - message.step};
    return messages;
  }

  void add_spread(int channel, int root, ChunkId chunk, double rank, const std::vector<int>& causes) {
    const HopTree& tree = spread_tree(channel, root);
    std::vector<int> task(tree.size());
    for (std::size_t i = 0; i < tree.size(); ++i) {
      const int before = tree[i].towards_root;
      task[i] = add(tree[i].hop, chunk, SendOp::copy, before < 0 ? causes : std::vector{task[index(before)]},
                    rank + tree[i].step);
    }
  }

  void add_sum(int channel, int turn, ChunkId chunk) {
    const int root = root_of_sum(channel, turn);
    const double rank = kStepsOfTurn * (algorithm_.root_of_sum ? turn : turn / members_.count());
    const HopTree& tree = gather_tree(channel, root);
    std::vector<std::vector<int>> arrivals(tree.size() + 1);  // the last ones are the root's
    int steps = 0;
    for (std::size_t i = tree.size(); i-- > 0;) {
      const int task = add(tree[i].hop, chunk, SendOp::reduce, arrivals[i], rank + tree[i].step);
      const int onward = tree[i].towards_root;
      arrivals[onward < 0 ? tree.size() : index(onward)].push_back(task);
      steps = std::max(steps, tree[i].step + 1);
    }
    add_spread(channel, root, chunk, rank + steps, arrivals.back());
  }

  /// Hop after hop, each of which rests on the one before.
  HopTree route_of(GpuId origin, GpuId destination) {
    HopTree route;
    for (const StepMessage& message : algorithm_.route(position(origin), position(destination))) {
      for (const int h : path(0, message.from, message.to)) {
        route.push_back({h, 0, message.step});
        // A path over other GPUs that comes back to one was a detour.
        const GpuId at = hop(h).dst;
        const auto there =
            std::ranges::find_if(route, [&](const TreeHop& t) { return hop(t.hop).dst == at; });
        route.erase(at == origin ? route.begin() : there + 1, route.end());
      }
    }
    for (std::size_t i = 0; i < route.size(); ++i) route[i].towards_root = static_cast<int>(i) - 1;
    return route;
  }

  void add_route(ChunkId chunk, double rank) {
    std::vector<int> causes;
    for (const TreeHop& part : route_of(demand_.origin(chunk), demand_.destinations(chunk).front()))
      causes = {add(part.hop, chunk, SendOp::copy, causes, rank + part.step)};
  }

  const KnownAlgorithm& algorithm_;
  const Members& members_;
  const Demand& demand_;
  GpuPaths paths_;
  std::vector<int> position_;  ///< per GPU; -1: no member
  TaskGraph graph_;
  std::vector<double> rank_;   ///< per task
  std::map<int, int> number_;  ///< hops of the table in graph_
  std::map<std::pair<int, int>, HopTree> spread_trees_;
  std::map<std::pair<int, int>, HopTree> gather_trees_;
};

/// Why the algorithm does not do the demand; empty where it does.
std::string why_unfit(const KnownAlgorithm& algorithm, const Demand& demand) {
  const bool sums = demand.kind() == DemandKind::all_reduction;
  if (sums ? is_plain_all_reduce(demand) : is_plain_spreading(demand)) {
    if (algorithm.spread) return "";
    if (sums || !demand.is_unicast()) return "it moves what one GPU has for one other";
  }
  if (demand.is_unicast()) return algorithm.route ? "" : "it spreads what every GPU has to all others";
  return "it knows data of one GPU for all others, or sums of the same GPUs for those GPUs";
}

}  // namespace

StepMessages binomial(int root, int count) {
  StepMessages messages;
  int distance = 1;
  while (distance < count) distance *= 2;
  for (int step = 0; (distance /= 2) > 0; ++step) {
    for (int at = 0; at < count; at += 2 * distance) {
      if (at + distance < count)
        messages.push_back({(root + at) % count, (root + at + distance) % count, step});
    }
  }
  return messages;
}

namespace {

/// Infinity where the algorithm does not do the demand.
double least_us_of(const MakeAlgorithm& make, const Instance& instance) {
  const bool combine = instance.demand.kind() == DemandKind::all_reduction;
  try {
    const HopTable hops(*instance.topology);
    const Members members{*instance.topology, hops, members_of(instance.demand), combine,
                          !combine && instance.demand.contributions().size() == 1};
    const KnownAlgorithm algorithm = make(members);
    if (!why_unfit(algorithm, instance.demand).empty()) return kInfinity;
    return KnownTasks(algorithm, members, instance.demand.with_chunks(combine ? members.count() : 1))
        .least_us();
  } catch (const Error& error) {
    if (error.code() != ExitCode::unavailable) throw;
    return kInfinity;
  }
}

}  // namespace

EngineInfo known_engine(std::string name, std::string help, MakeAlgorithm make,
                        std::function<int(int num_members)> pieces) {
  EngineInfo engine{.name = name, .help = std::move(help), .traits = kContinuousTime};
  engine.is_known_algorithm = true;
  engine.least_us = [make](const Instance& instance) { return least_us_of(make, instance); };
  engine.combines = true;
  engine.work = [](const Demand& demand, const std::string&) { return 4 * demand.num_deliveries(); };
  engine.pieces = [pieces](const Demand& demand) {
    return demand.kind() == DemandKind::all_reduction ? pieces(static_cast<int>(members_of(demand).size()))
                                                      : 1;
  };
  engine.prepare = [name, make](const Instance& instance, const EngineOptions&,
                                const Toolbox&) -> PreparedEngine {
    const Demand& whole = instance.demand;
    const auto hops = std::make_shared<const HopTable>(*instance.topology);
    const bool combine = whole.kind() == DemandKind::all_reduction;
    const auto members =
        std::make_shared<const Members>(Members{*instance.topology, *hops, members_of(whole), combine,
                                                !combine && whole.contributions().size() == 1});
    const auto algorithm = std::make_shared<const KnownAlgorithm>(make(*members));
    if (const std::string why = why_unfit(*algorithm, whole); !why.empty()) {
      throw Error(ExitCode::unavailable, fmt::format("engine {} does not do this {}: {}; use --engine auto",
                                                     name, to_string(whole.collective()), why));
    }
    return [topology = instance.topology, hops, members, algorithm](const Demand& demand,
                                                                    const EngineOptions& asked) {
      KnownTasks tasks(*algorithm, *members, demand);
      tasks.add_all();
      EngineResult result;
      result.schedule = schedule_tasks_there_and_back(*topology, demand, tasks.graph(), tasks.ranks(),
                                                      asked.seed, asked.concurrency);
      result.metrics["channels"] = static_cast<double>(algorithm->shares.size());
      return result;
    };
  };
  return engine;
}

EngineInfo quick_engine(EngineInfo known, bool in_allgather) {
  known.goes_first = true;
  known.applicable = [least_us = known.least_us, in_allgather](const Instance& instance,
                                                               const EngineOptions& options) {
    const Demand& demand = instance.demand;
    const std::size_t gpus = members_of(demand).size();
    if (demand.kind() == DemandKind::all_reduction) {
      if (!is_plain_all_reduce(demand) || gpus > kMostQuickMembers) return false;
    } else if (!in_allgather || !is_plain_allgather(instance) || gpus > kMostQuickMembersOfAllgather) {
      return false;
    }
    return least_us(instance) <= kNearItsBound * options.bound_us;
  };
  return known;
}

}  // namespace rondo
