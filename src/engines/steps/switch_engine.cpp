#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "adding_switches.hpp"
#include "rondo/core/demand_shapes.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/index.hpp"
#include "rondo/engines/engine_row.hpp"
#include "switch_plan.hpp"
#include "task_scheduler.hpp"

/// AllReduce in which switches add and copy (NVLink SHARP, InfiniBand SHARP): those that links join do all of
/// it in one step for the GPUs that they have. Or the GPUs of each group add up at one of them, through a
/// switch or over links; those GPUs' sums meet in switches between the groups, and what comes back spreads.
namespace rondo {
namespace {

struct Preparation {
  Preparation(std::shared_ptr<const Topology> fabric, const std::vector<GpuId>& members)
      : topology(std::move(fabric)), switches(*topology) {
    if (!topology->has_bandwidth_steps()) plans = switch_plans(*topology, switches, members);
  }

  std::shared_ptr<const Topology> topology;
  AddingSwitches switches;
  std::vector<SwitchPlan> plans = {};
};

/// Shares closer to a whole number of them on a link than this fill it.
constexpr double kFills = 1e-9;

/// By how much a transfer has to be slower, so that a whole number of them side by side fills the link of
/// which it takes the greatest part without taking all of it; 1: not at all.
double evening_divisor(const Hop& hop) {
  double share = 0;
  for (const HopLink& part : hop.links) {
    if (part.share < 1) share = std::max(share, part.share);
  }
  return share > 0 ? std::max(1.0, share * std::ceil(1 / share - kFills)) : 1;
}

/// Chunk by chunk, each where links have least to do.
class SwitchTasks {
 public:
  /// `even`: at rates of which whole numbers fill links.
  SwitchTasks(const Preparation& known, const SwitchPlan& plan, const Demand& demand, bool even)
      : known_(known),
        plan_(plan),
        demand_(demand),
        is_even_(even),
        loads_us_(known.topology->num_links(), 0) {
    for (std::size_t c = 0; c < demand.num_chunks(); ++c) add_sum(ChunkId{c});
  }

  bool can_be_evened() const { return !is_even_ && can_be_evened_; }
  const TaskGraph& graph() const { return graph_; }
  const std::vector<double>& ranks() const { return rank_; }

 private:
  double bytes(ChunkId chunk) const { return demand_.bytes(chunk); }

  int add(Hop hop, ChunkId chunk, SendOp op, const std::vector<int>& causes) {
    add_load(loads_us_, hop, bytes(chunk));
    std::vector<LinkId> links;
    for (const HopLink& part : hop.links) links.push_back(part.link);
    const auto [number, is_new] = numbers_.try_emplace(links, static_cast<int>(graph_.hops.size()));
    if (is_new) graph_.hops.push_back(std::move(hop));
    rank_.push_back(static_cast<double>(chunk.index()));
    return graph_.add(number->second, chunk, op, causes);
  }

  /// Of the GPUs of each group that whose link to the joint, or from there, has least to do.
  std::vector<GpuId> idle_ones(int joint, const std::vector<std::vector<GpuId>>& groups, bool send) const {
    std::vector<GpuId> idle;
    for (const std::vector<GpuId>& group : groups) {
      idle.push_back(*std::ranges::min_element(
          group, {}, [&](GpuId g) { return known_.switches.busy_us(joint, g, send, loads_us_); }));
    }
    return idle;
  }

  Hop through(int joint, std::vector<GpuId> sources, std::vector<GpuId> destinations, ChunkId chunk) {
    const std::tuple key{joint, sources, destinations};
    auto known = joined_.find(key);
    if (known == joined_.end()) {
      known =
          joined_.emplace(key, *known_.switches.joined(joint, std::move(sources), std::move(destinations)))
              .first;
    }
    Hop hop = known_.switches.transfer(known->second, bytes(chunk), loads_us_);
    const double divisor = evening_divisor(hop);
    can_be_evened_ = can_be_evened_ || divisor > 1 + kFills;
    return is_even_ && divisor > 1 + kFills ? slowed(std::move(hop), divisor) : hop;
  }

  void add_sum(ChunkId chunk) {
    std::optional<Hop> between;
    std::vector<GpuId> senders;
    std::vector<GpuId> takers;
    double least_us = kNever;
    for (const BetweenGroups& by : plan_.between) {
      const bool at_once = plan_.groups.size() == 1;
      std::vector<GpuId> from = at_once ? by.senders.front() : idle_ones(by.joint, by.senders, true);
      std::vector<GpuId> to = at_once ? by.takers.front() : takers_beside(from, by);
      Hop hop = through(by.joint, from, to, chunk);
      const double busy_us = load_with(loads_us_, hop, bytes(chunk));
      if (busy_us >= least_us) continue;
      least_us = busy_us;
      between = std::move(hop);
      senders = std::move(from);
      takers = std::move(to);
    }
    if (plan_.groups.size() == 1) {
      add(*std::move(between), chunk, SendOp::copy, {});
      return;
    }
    std::vector<int> sums;
    for (std::size_t g = 0; g < plan_.groups.size(); ++g) gather(g, senders[g], chunk, sums);
    const int whole = add(*std::move(between), chunk, SendOp::copy, sums);
    for (std::size_t g = 0; g < plan_.groups.size(); ++g) spread(g, takers[g], chunk, whole);
  }

  /// The senders themselves where they can; they then have nothing else to hear.
  std::vector<GpuId> takers_beside(const std::vector<GpuId>& senders, const BetweenGroups& by) const {
    std::vector<GpuId> takers = idle_ones(by.joint, by.takers, false);
    for (std::size_t g = 0; g < takers.size(); ++g) {
      if (std::ranges::find(by.takers[g], senders[g]) != by.takers[g].end()) takers[g] = senders[g];
    }
    return takers;
  }

  static std::vector<GpuId> without(std::vector<GpuId> gpus, GpuId one) {
    std::erase(gpus, one);
    return gpus;
  }

  /// What arrives last at `sender` joins `sums`.
  void gather(std::size_t group, GpuId sender, ChunkId chunk, std::vector<int>& sums) {
    const InsideGroup& inside = plan_.inside[group];
    const std::vector<GpuId> others = without(plan_.groups[group], sender);
    if (others.empty()) return;
    if (inside.joint) {
      sums.push_back(add(through(*inside.joint, others, {sender}, chunk), chunk, SendOp::reduce, {}));
      return;
    }
    const std::vector<TreeHop> tree = tree_of(inside, true, sender, others, chunk);
    std::map<GpuId, std::vector<int>> arrivals;
    for (std::size_t i = tree.size(); i-- > 0;) {
      const Hop& hop = *tree[i].hop;
      arrivals[hop.dst].push_back(add(hop, chunk, SendOp::reduce, arrivals[hop.src]));
    }
    const std::vector<int>& last = arrivals[sender];
    sums.insert(sums.end(), last.begin(), last.end());
  }

  void spread(std::size_t group, GpuId taker, ChunkId chunk, int whole) {
    const InsideGroup& inside = plan_.inside[group];
    const std::vector<GpuId> others = without(plan_.groups[group], taker);
    if (others.empty()) return;
    if (inside.joint) {
      add(through(*inside.joint, {taker}, others, chunk), chunk, SendOp::copy, {whole});
      return;
    }
    std::map<GpuId, int> arrival{{taker, whole}};
    for (const TreeHop& part : tree_of(inside, false, taker, others, chunk)) {
      const Hop& hop = *part.hop;
      arrival[hop.dst] = add(hop, chunk, SendOp::copy, {arrival.at(hop.src)});
    }
  }

  struct TreeHop {
    double distance_us;
    const Hop* hop;
  };

  /// Shortest ways to or from the root, from it outwards: a hop takes as long as its links are kept already,
  /// and its own time.
  std::vector<TreeHop> tree_of(const InsideGroup& inside, bool up, GpuId root,
                               const std::vector<GpuId>& others, ChunkId chunk) const {
    std::vector<double> length;
    for (const Hop& hop : inside.hops)
      length.push_back(hop.fixed_us + load_with(loads_us_, hop, bytes(chunk)));
    const ShortestPaths paths =
        shortest_paths(up ? reversed(inside.graph) : inside.graph, length, root.value);
    std::vector<TreeHop> tree;
    for (const GpuId g : others)
      tree.push_back({paths.distance[g.index()], &inside.hops[index(paths.last_arc[g.index()])]});
    std::ranges::stable_sort(tree, {}, &TreeHop::distance_us);
    return tree;
  }

  static constexpr double kNever = std::numeric_limits<double>::infinity();

  const Preparation& known_;
  const SwitchPlan& plan_;
  const Demand& demand_;
  bool is_even_;
  bool can_be_evened_ = false;
  BusyLinks loads_us_;
  TaskGraph graph_ = {};
  std::vector<double> rank_ = {};  ///< per task
  std::map<std::vector<LinkId>, int> numbers_ = {};
  std::map<std::tuple<int, std::vector<GpuId>, std::vector<GpuId>>, AddingSwitches::Joined> joined_ = {};
};

/// By the plan, and the rates, by which it ends first.
Schedule schedule_through_switches(const Preparation& known, const Demand& demand,
                                   const EngineOptions& options) {
  std::optional<Schedule> best;
  for (const SwitchPlan& plan : known.plans) {
    for (const bool even : {false, true}) {
      const SwitchTasks tasks(known, plan, demand, even);
      Schedule schedule = schedule_tasks(*known.topology, demand, tasks.graph(), tasks.ranks(), options.seed,
                                         options.concurrency);
      if (!best || schedule.finish_us < best->finish_us) best = std::move(schedule);
      if (!tasks.can_be_evened()) break;
    }
  }
  return *std::move(best);
}

PreparedEngine prepare_switches(const Instance& instance, const EngineOptions&, const Toolbox&) {
  std::shared_ptr<const Preparation> known;
  if (is_plain_all_reduce(instance.demand))
    known = std::make_shared<const Preparation>(instance.topology, members_of(instance.demand));
  if (!known || known->plans.empty()) {
    throw Error(ExitCode::unavailable,
                "engine switches does AllReduce through switches that add and copy (\"reduce\" and "
                "\"multicast\") and join all GPUs, or one of each chassis; use --engine auto");
  }
  return [known](const Demand& demand, const EngineOptions& asked) {
    EngineResult result;
    result.schedule = schedule_through_switches(*known, demand, asked);
    return result;
  };
}

bool may_add_in_switches(const Instance& instance) {
  const auto adds = [](const Node& node) { return node.kind == NodeKind::switch_ && node.reduce; };
  return is_plain_all_reduce(instance.demand) && std::ranges::any_of(instance.topology->nodes(), adds) &&
         !Preparation(instance.topology, members_of(instance.demand)).plans.empty();
}

}  // namespace

EngineInfo switch_engine() {
  EngineInfo engine{.name = "switches",
                    .help =
                        "switches add up sums and copy results (NVLink SHARP, InfiniBand SHARP), within the "
                        "chassis and between them; AllReduce",
                    .traits = kContinuousTime};
  engine.applicable = [](const Instance& instance, const EngineOptions&) {
    return may_add_in_switches(instance);
  };
  engine.work = [](const Demand& demand, const std::string&) { return 2 * demand.num_deliveries(); };
  engine.combines = true;
  engine.spreads = false;
  engine.goes_first = true;
  engine.prepare = prepare_switches;
  return engine;
}

}  // namespace rondo
