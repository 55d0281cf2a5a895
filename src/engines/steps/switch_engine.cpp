#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <memory>
#include <optional>

#include "rondo/core/demand_shapes.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/index.hpp"
#include "rondo/engines/engine_row.hpp"
#include "task_scheduler.hpp"

/// AllReduce in which switches add and copy (NVLink SHARP, InfiniBand SHARP): within each chassis sums come
/// through its switch to one GPU, those GPUs' sums meet in a switch between the chassis, and what comes back
/// is copied within each chassis. One switch that all GPUs have does all of it in one step.
namespace rondo {
namespace {

constexpr double kSameFigures = 1e-9;

/// A GPU's way into a switch and back.
struct Port {
  LinkId in;
  LinkId out;
};

/// A switch that adds and copies, with the GPUs at it.
using Ports = std::map<GpuId, Port>;

/// What is done with the chunks of one place: transfers that rest on all of the step before.
struct PlaceSteps {
  std::vector<int> gather;  ///< hops, one a chassis
  int across = 0;
  std::vector<int> spread;
};

struct SwitchPlan {
  std::vector<Hop> hops;
  std::vector<PlaceSteps> places;
};

std::vector<Ports> adding_switches(const Topology& topology) {
  std::vector<Ports> switches;
  for (std::size_t n = 0; n < topology.num_nodes(); ++n) {
    const Node& node = topology.node(NodeId(n));
    if (node.kind != NodeKind::switch_ || !node.reduce || !node.multicast ||
        node.forwarding != Forwarding::cut_through)
      continue;
    Ports ports;
    for (const LinkId out : topology.out_links(NodeId(n))) {
      if (!topology.is_gpu(topology.link(out).dst)) continue;
      for (const LinkId in : topology.out_links(topology.link(out).dst)) {
        if (topology.link(in).dst == NodeId(n))
          ports.try_emplace(topology.gpu_of(topology.link(out).dst), Port{in, out});
      }
    }
    switches.push_back(std::move(ports));
  }
  return switches;
}

/// One transfer from `sources` through the switch to `destinations`. What is added has to enter at one
/// instant, at one rate: nothing where links differ.
std::optional<Hop> through(const Topology& topology, const Ports& ports, const std::vector<GpuId>& sources,
                           const std::vector<GpuId>& destinations) {
  std::vector<LinkId> links;
  std::vector<int> parents;
  for (const GpuId g : sources) {
    links.push_back(ports.at(g).in);
    parents.push_back(-1);
  }
  for (const GpuId g : destinations) {
    links.push_back(ports.at(g).out);
    parents.push_back(0);
  }
  const auto same = [](double a, double b) { return std::abs(a - b) <= kSameFigures * std::max(a, b); };
  for (std::size_t i = 0; i < links.size(); ++i) {
    const Link& link = topology.link(links[i]);
    const Link& like = topology.link(i < sources.size() ? links.front() : links.back());
    if (!same(link.bandwidth_GBps, topology.link(links.front()).bandwidth_GBps) ||
        !same(link.latency_us, like.latency_us) || link.message_us > 0 || !link.bandwidth_steps.empty())
      return std::nullopt;
  }
  return make_hop(topology, links, parents);
}

/// The first switch that all of `gpus` are at; null where there is none.
const Ports* joining(const std::vector<Ports>& switches, const std::vector<GpuId>& gpus) {
  const auto found = std::ranges::find_if(switches, [&](const Ports& ports) {
    return std::ranges::all_of(gpus, [&](GpuId g) { return ports.contains(g); });
  });
  return found == switches.end() ? nullptr : &*found;
}

class Planner {
 public:
  Planner(const Topology& topology, const std::vector<GpuId>& members)
      : topology_(topology), members_(members), switches_(adding_switches(topology)) {}

  std::optional<SwitchPlan> plan() {
    const auto at_once = add(members_, members_);
    if (at_once) {
      plan_.places.push_back({{}, *at_once, {}});
      return std::move(plan_);
    }
    std::map<int, std::vector<GpuId>> by_chassis;
    for (const GpuId g : members_) {
      const auto& chassis = topology_.node(topology_.node_of(g)).chassis;
      if (!chassis) return std::nullopt;
      by_chassis[*chassis].push_back(g);
    }
    const std::size_t places = by_chassis.begin()->second.size();
    for (std::size_t p = 0; p < places; ++p) {
      if (!add_place(by_chassis, p)) return std::nullopt;
    }
    return std::move(plan_);
  }

 private:
  std::optional<int> add(const std::vector<GpuId>& sources, const std::vector<GpuId>& destinations) {
    std::vector<GpuId> all = sources;
    std::ranges::copy(destinations, std::back_inserter(all));
    const Ports* ports = joining(switches_, all);
    std::optional<Hop> hop = ports ? through(topology_, *ports, sources, destinations) : std::nullopt;
    if (!hop) return std::nullopt;
    plan_.hops.push_back(*std::move(hop));
    return static_cast<int>(plan_.hops.size()) - 1;
  }

  bool add_place(const std::map<int, std::vector<GpuId>>& by_chassis, std::size_t place) {
    PlaceSteps steps;
    std::vector<GpuId> roots;
    for (const auto& [number, gpus] : by_chassis) {
      if (place >= gpus.size() || gpus.size() != by_chassis.begin()->second.size()) return false;
      roots.push_back(gpus[place]);
      std::vector<GpuId> others = gpus;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(place));
      if (others.empty()) continue;
      const auto in = add(others, {gpus[place]});
      const auto out = add({gpus[place]}, others);
      if (!in || !out) return false;
      steps.gather.push_back(*in);
      steps.spread.push_back(*out);
    }
    const auto across = add(roots, roots);
    if (!across) return false;
    steps.across = *across;
    plan_.places.push_back(std::move(steps));
    return true;
  }

  const Topology& topology_;
  const std::vector<GpuId>& members_;
  std::vector<Ports> switches_;
  SwitchPlan plan_;
};

std::optional<SwitchPlan> plan_of(const Instance& instance) {
  if (!is_plain_all_reduce(instance.demand)) return std::nullopt;
  const std::vector<GpuId> members = members_of(instance.demand);
  return Planner(*instance.topology, members).plan();
}

Schedule schedule_through_switches(const Topology& topology, const SwitchPlan& plan, const Demand& demand,
                                   const EngineOptions& options) {
  TaskGraph graph{plan.hops, {}};
  std::vector<double> rank;
  const auto add = [&](int hop, ChunkId chunk, SendOp op, const std::vector<int>& causes, double order) {
    rank.push_back(order);
    return graph.add(hop, chunk, op, causes);
  };
  for (std::size_t c = 0; c < demand.num_chunks(); ++c) {
    const ChunkId chunk(c);
    const PlaceSteps& steps = plan.places[c % plan.places.size()];
    const auto turn = static_cast<double>(c / plan.places.size());
    std::vector<int> sums;
    for (const int hop : steps.gather) sums.push_back(add(hop, chunk, SendOp::reduce, {}, turn));
    // What comes back has all sums, those of the receiver as well.
    const int whole = add(steps.across, chunk, SendOp::copy, sums, turn);
    for (const int hop : steps.spread) add(hop, chunk, SendOp::copy, {whole}, turn);
  }
  return schedule_tasks(topology, demand, graph, rank, options.seed, options.concurrency);
}

PreparedEngine prepare_switches(const Instance& instance, const EngineOptions&, const Toolbox&) {
  auto found = plan_of(instance);
  if (!found) {
    throw Error(
        ExitCode::unavailable,
        "engine switches does AllReduce through switches that add and copy (\"reduce\" and "
        "\"multicast\"), one that all GPUs have or one a chassis and one between GPUs of the same place "
        "in each, with links of the same figures; use --engine auto");
  }
  const auto plan = std::make_shared<const SwitchPlan>(*std::move(found));
  return [topology = instance.topology, plan](const Demand& demand, const EngineOptions& asked) {
    EngineResult result;
    result.schedule = schedule_through_switches(*topology, *plan, demand, asked);
    return result;
  };
}

}  // namespace

EngineInfo switch_engine() {
  EngineInfo engine{.name = "switches",
                    .help =
                        "switches add up sums and copy results (NVLink SHARP, InfiniBand SHARP), within the "
                        "chassis and between them; AllReduce",
                    .traits = kContinuousTime};
  engine.applicable = [](const Instance& instance, const EngineOptions&) {
    return plan_of(instance).has_value();
  };
  engine.work = [](const Demand& demand, const std::string&) { return 2 * demand.num_deliveries(); };
  engine.combines = true;
  engine.spreads = false;
  engine.goes_first = true;
  engine.pieces = [](const Demand& demand) { return static_cast<int>(members_of(demand).size()); };
  engine.prepare = prepare_switches;
  return engine;
}

}  // namespace rondo
