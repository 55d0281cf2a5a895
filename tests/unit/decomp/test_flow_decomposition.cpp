// Flows from those of their parts: by hand on lines of a few GPUs, then what every flow has to keep to.

#include <gtest/gtest.h>

#include <map>

#include "../engines/fabrics.hpp"
#include "expect_error.hpp"
#include "rondo/core/generators.hpp"
#include "rondo/decomp/decomposition.hpp"
#include "rondo/flows/flow_parts.hpp"

namespace rondo::test_flow_decomposition {
namespace {

Instance alltoall(Topology topology) {
  const std::size_t gpus = topology.num_gpus();
  return {std::make_shared<const Topology>(std::move(topology)),
          make_demand(Collective::alltoall, kMB * static_cast<double>(gpus), gpus, 1)};
}

/// 0 - 1 | 2 - 3 | ...: two GPUs a chassis, links of 1 GB/s without latency both ways.
std::shared_ptr<const Topology> line(int chassis) {
  std::vector<Node> nodes;
  std::vector<Link> links;
  for (int v = 0; v < 2 * chassis; ++v) {
    nodes.push_back(gpu());
    nodes.back().chassis = v / 2;
    if (v == 0) continue;
    links.push_back(link(v - 1, v, 1, 0));
    links.push_back(link(v, v - 1, 1, 0));
  }
  return fabric(nodes, links);
}

/// One megabyte a pair.
Demand pairs(std::size_t gpus, const std::vector<std::pair<int, int>>& ends) {
  std::vector<Contribution> contributions;
  for (const auto& [src, dst] : ends) contributions.push_back({GpuId{src}, kMB, {GpuId{dst}}});
  return Demand(Collective::custom, kMB * static_cast<double>(ends.size()), gpus, contributions, 1);
}

/// `epochs` of 1 MB at 1 GB/s.
Instance over_time(std::shared_ptr<const Topology> topology, Demand demand, int epochs) {
  Instance instance{std::move(topology), std::move(demand)};
  EpochOptions options;
  options.rule = EpochRule::fixed;
  options.tau_us = 1000;
  instance.grid = make_epoch_grid(*instance.topology, instance.demand, options);
  instance.grid->num_epochs = epochs;
  return instance;
}

std::vector<SolvedFlow> solve(const std::vector<Instance>& flows) {
  const Formulation formulation = flows.front().grid ? time_expanded_flow : steady_state_flow;
  return solve_each(flows, formulation, {}, *make_clp_solver(), *make_local_communicator());
}

SolvedFlow whole_flow(const Instance& instance) {
  return solve({instance}).front();
}

SolvedFlow by_clusters(const Instance& instance) {
  return find_decomposition("ncflow").solve_flow(instance, 0, 0, solve);
}

/// (origin, link, epoch) -> megabytes.
using Loads = std::map<std::tuple<int, int, int>, double>;
Loads loads_of(const SolvedFlow& flow) {
  Loads loads;
  for (const FlowField::Entry& e : flow.field.entries)
    loads[{e.commodity, e.link.value, e.epoch}] += std::round(e.amount) / kMB;
  return loads;
}

// Links 0: 0 -> 1, 2: 1 -> 2, 4: 2 -> 3.

TEST(NcFlow, RoutesBetweenClustersThenInside) {
  const Instance instance{line(2), pairs(4, {{0, 3}, {1, 2}})};
  const SolvedFlow flow = by_clusters(instance);
  ASSERT_EQ(flow.status, SolveStatus::optimal);
  EXPECT_DOUBLE_EQ(flow.field.finish_us, 2000);  // both over the link between the chassis
  EXPECT_EQ(loads_of(flow), (Loads{{{0, 0, 0}, 1}, {{0, 2, 0}, 1}, {{0, 4, 0}, 1}, {{1, 2, 0}, 1}}));
}

TEST(NcFlow, OverTimeDataEntersAClusterBeforeItGoesOn) {
  const Demand demand = pairs(4, {{0, 3}});
  const SolvedFlow flow = by_clusters(over_time(line(2), demand, 3));
  ASSERT_EQ(flow.status, SolveStatus::optimal);
  EXPECT_NEAR(flow.objective, -1, 1e-7);
  EXPECT_EQ(loads_of(flow), (Loads{{{0, 0, 0}, 1}, {{0, 2, 1}, 1}, {{0, 4, 2}, 1}}));
  // An epoch less, and nothing that leaves its chassis reaches the other one.
  EXPECT_NEAR(by_clusters(over_time(line(2), demand, 2)).objective, 0, 1e-7);
}

TEST(NcFlow, OverTimeClustersTakeTheLongestPathAsTheTimeToCrossThem) {
  // 1 -> 2 alone takes one epoch; between the chassis it is as if data came from 0 and went to 3.
  const Demand demand = pairs(4, {{1, 2}});
  EXPECT_NEAR(whole_flow(over_time(line(2), demand, 1)).objective, -1, 1e-7);
  EXPECT_NEAR(by_clusters(over_time(line(2), demand, 2)).objective, 0, 1e-7);
  const SolvedFlow flow = by_clusters(over_time(line(2), demand, 3));
  EXPECT_NEAR(flow.objective, -1, 1e-7);
  EXPECT_EQ(loads_of(flow), (Loads{{{1, 2, 1}, 1}}));
}

TEST(NcFlow, OverTimeEveryGpuOfAClusterHasToReachTheOthersInside) {
  std::vector<Node> nodes{gpu(), gpu(), gpu(), gpu()};
  for (std::size_t v = 0; v < 4; ++v) nodes[v].chassis = static_cast<int>(v / 2);
  const auto ring = fabric(nodes, {link(0, 1), link(1, 2), link(2, 3), link(3, 0)});  // 1 -> 0 around it
  expect_error(ExitCode::unavailable, {"node 1", "node 0", "cluster 0", "--decompose pop"}, [&] {
    by_clusters(over_time(ring, pairs(4, {{0, 3}}), 9));
  });
}

TEST(NcFlow, RefusesFlowsThatShareBandwidth) {
  const auto bus = fabric({gpu(), gpu()}, {link(0, 1), link(1, 0)}, {{"bus", {LinkId{0}, LinkId{1}}, 1}});
  expect_error(ExitCode::unavailable, {"--decompose pop"}, [&] { by_clusters({bus, pairs(2, {{0, 1}})}); });
}

TEST(Pop, EveryPartHasItsShareOfTheLinks) {
  const auto pair = fabric({gpu(), gpu()}, {link(0, 1), link(1, 0)});
  const Instance instance{pair, pairs(2, {{0, 1}, {1, 0}})};
  const SolvedFlow flow =
      find_decomposition("pop").solve_flow(instance, 2, 0, [&](const std::vector<Instance>& parts) {
        EXPECT_EQ(parts.size(), 2U);
        for (const Instance& part : parts) {
          EXPECT_EQ(part.demand.contributions().size(), 1U);
          for (const Link& link : part.topology->links()) EXPECT_DOUBLE_EQ(link.bandwidth_GBps, 0.5);
        }
        return solve(parts);
      });
  EXPECT_DOUBLE_EQ(flow.field.finish_us, 2000);  // whole: 1000
  EXPECT_EQ(loads_of(flow), (Loads{{{0, 0, 0}, 1}, {{1, 1, 0}, 1}}));
}

TEST(FlowsInParts, ABoundOfAPartIsNoneOfTheWhole) {
  for (const DecompositionInfo& decomposition : decompositions()) {
    if (decomposition.is_whole) continue;
    for (const Instance& instance :
         {alltoall(*line(2)), over_time(line(2), make_demand(Collective::alltoall, 4 * kMB, 4, 1), 12)}) {
      ASSERT_TRUE(std::isfinite(whole_flow(instance).dual_bound));
      const SolvedFlow flow = decomposition.solve_flow(instance, 0, 0, solve);
      EXPECT_EQ(flow.status, SolveStatus::optimal) << decomposition.name;
      EXPECT_EQ(flow.dual_bound, -kInfinity) << decomposition.name;
    }
  }
}

TEST(FlowsInParts, TheWorstStatusCountsAndLeavesNoFlow) {
  for (const DecompositionInfo& decomposition : decompositions()) {
    if (decomposition.is_whole) continue;
    const SolvedFlow flow = decomposition.solve_flow(alltoall(*line(2)), 0, 0, [](const auto& flows) {
      return std::vector<SolvedFlow>(flows.size(), SolvedFlow{SolveStatus::no_solution});
    });
    EXPECT_EQ(flow.status, SolveStatus::no_solution) << decomposition.name;
    EXPECT_TRUE(flow.field.entries.empty()) << decomposition.name;
  }
}

TEST(NcFlow, ClustersKeepEveryGpusBalance) {
  // Two chassis of the shipped kind, where data crosses by way of the GPUs that have a network card.
  const Instance instance = alltoall(generate_topology("star", {{"chassis", "3"}, {"intra", "ndv2"}}));
  const Topology& topology = *instance.topology;
  const SolvedFlow flow = by_clusters(instance);
  ASSERT_EQ(flow.status, SolveStatus::optimal);
  std::vector<std::vector<double>> gain(topology.num_gpus(), std::vector<double>(topology.num_nodes(), 0.0));
  std::vector<double> load(topology.num_links(), 0.0);
  for (const FlowField::Entry& entry : flow.field.entries) {
    std::vector<double>& of_origin = gain[static_cast<std::size_t>(entry.commodity)];
    of_origin[topology.link(entry.link).dst.index()] += entry.amount;
    of_origin[topology.link(entry.link).src.index()] -= entry.amount;
    load[entry.link.index()] += entry.amount;
  }
  for (std::size_t g = 0; g < gain.size(); ++g) {
    for (std::size_t n = 0; n < topology.num_nodes(); ++n) {
      const double wanted = !topology.is_gpu(NodeId{n}) ? 0 : n == g ? -23e6 : 1e6;
      EXPECT_NEAR(gain[g][n], wanted, 10) << g << ' ' << n;
    }
  }
  for (std::size_t l = 0; l < load.size(); ++l)
    EXPECT_LE(load[l], topology.links()[l].bandwidth_GBps * 1e3 * flow.field.finish_us * (1 + 1e-6));
  EXPECT_GE(flow.field.finish_us, whole_flow(instance).field.finish_us * (1 - 1e-9));
}

/// What comes in at a node less what goes out over time never falls below 0 at a GPU that is not the origin
/// (with intervals only the sum over origins keeps to that), is always 0 at a switch, and ends at the demand.
void expect_a_flow_over_time(const Instance& instance, const SolvedFlow& flow) {
  const Topology& topology = *instance.topology;
  const auto epochs = static_cast<std::size_t>(instance.grid->num_epochs);
  const std::vector<int> landing = flow_landing_epochs(topology, instance.grid->tau_us);
  using Series = std::vector<double>;          // per epoch
  std::map<std::pair<int, int>, Series> gain;  // by origin and node
  std::vector<Series> load(topology.num_links(), Series(epochs, 0.0));
  for (const FlowField::Entry& entry : flow.field.entries) {
    const Link& link = topology.link(entry.link);
    const auto series = [&](NodeId n) -> Series& {
      return gain.try_emplace({entry.commodity, n.value}, Series(epochs + 1, 0.0)).first->second;
    };
    const double rate = entry.amount / (entry.to - entry.from);
    for (int k = entry.from; k < entry.to; ++k) {
      const auto at = static_cast<std::size_t>(k);
      series(link.src)[at] -= rate;
      series(link.dst)[at + static_cast<std::size_t>(landing[entry.link.index()])] += rate;
      load[entry.link.index()][at] += rate;
    }
  }
  constexpr double kBytes = 10;  // of rounding
  for (const auto& [ends, series] : gain) {
    const auto& [origin, node] = ends;
    if (topology.node_of(GpuId{origin}).value == node) continue;
    double held = 0;
    for (const double change : series) {
      held += change;
      if (instance.interval_starts.empty()) {
        EXPECT_GE(held, -kBytes) << origin << ' ' << node;
      }
      EXPECT_LE(held, topology.is_gpu(NodeId{node}) ? 1e6 * static_cast<double>(topology.num_gpus()) : kBytes)
          << origin << ' ' << node;
    }
    EXPECT_NEAR(held, topology.is_gpu(NodeId{node}) ? 1e6 : 0, kBytes) << origin << ' ' << node;
  }
  for (std::size_t l = 0; l < load.size(); ++l) {
    const double capacity = topology.links()[l].bandwidth_GBps * 1e3 * instance.grid->tau_us;
    for (const double amount : load[l]) EXPECT_LE(amount, capacity + kBytes) << l;
  }
}

TEST(NcFlow, ClustersKeepTimeAndEveryGpusBalance) {
  for (const char* gpus : {"full", "switch"}) {
    Instance instance =
        alltoall(generate_topology("star", {{"chassis", "2"}, {"gpus", "3"}, {"intra", gpus}}));
    EpochOptions epochs;
    epochs.multiplier = 4;
    instance.grid = make_epoch_grid(*instance.topology, instance.demand, epochs);
    instance.grid->num_epochs = 30;
    for (const bool coarse : {false, true}) {
      if (coarse) instance.interval_starts = {0, 1, 2, 4, 8, 22, 26, 28, 29};
      const SolvedFlow flow = by_clusters(instance);
      ASSERT_EQ(flow.status, SolveStatus::optimal);
      ASSERT_NEAR(flow.objective, -1, 1e-7) << gpus << coarse;
      expect_a_flow_over_time(instance, flow);
    }
  }
}

TEST(NcFlow, DataCrossesAClusterInTime) {
  // 0 - 1 | 2 - 3 | 4 - 5: what goes from the first two to the last two crosses those between.
  Instance instance = alltoall(*line(3));
  instance.grid = make_epoch_grid(*instance.topology, instance.demand, {});
  instance.grid->num_epochs = 20;  // 9 MB over the link in the middle, 1 MB an epoch, and time to get there
  const SolvedFlow flow = by_clusters(instance);
  ASSERT_EQ(flow.status, SolveStatus::optimal);
  ASSERT_NEAR(flow.objective, -1, 1e-7);
  expect_a_flow_over_time(instance, flow);
}

TEST(Pop, EvenlyDealtChassisLoseNothingWhereTheCardsLimit) {
  const Instance instance = alltoall(generate_topology("star", {{"chassis", "2"}, {"intra", "ndv2"}}));
  const SolvedFlow whole = whole_flow(instance);
  std::size_t parts = 0;
  const SolvedFlow flow =
      find_decomposition("pop").solve_flow(instance, 4, 7, [&](const std::vector<Instance>& flows) {
        parts = flows.size();
        return solve(flows);
      });
  EXPECT_EQ(parts, 4U);
  ASSERT_EQ(flow.status, SolveStatus::optimal);
  EXPECT_NEAR(flow.field.finish_us, whole.field.finish_us, 1e-6 * whole.field.finish_us);
  EXPECT_LT(flow.columns, whole.columns / 3);
}

}  // namespace
}  // namespace rondo::test_flow_decomposition
