#include <gtest/gtest.h>

#include <utility>

#include "rondo/core/early_delivery.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/engines/engines.hpp"
#include "rondo/formulations/formulations.hpp"
#include "rondo/solvers/solvers.hpp"

namespace rondo::test_milp {
namespace {

/// The figures of jobs/topologies/dgx1.json.
Topology dgx1() {
  TopologyData data;
  data.nodes.assign(8, Node{NodeKind::gpu});
  const auto add = [&](double bandwidth_GBps, const std::vector<std::pair<int, int>>& pairs) {
    for (const auto& [a, b] : pairs) {
      data.links.push_back({NodeId{a}, NodeId{b}, bandwidth_GBps, 0.7});
      data.links.push_back({NodeId{b}, NodeId{a}, bandwidth_GBps, 0.7});
    }
  };
  add(50, {{0, 1}, {0, 4}, {1, 3}, {2, 3}, {2, 6}, {4, 5}, {5, 7}, {6, 7}});
  add(25, {{0, 2}, {0, 3}, {1, 2}, {1, 5}, {3, 7}, {4, 6}, {4, 7}, {5, 6}});
  return Topology(std::move(data));
}

Toolbox toolbox() {
  Toolbox tools;
  tools.formulation = all_formulations();
  tools.lp = make_clp_solver();
  tools.milp = make_cbc_solver();
  return tools;
}

EngineResult run(const Topology& topology, const Demand& demand, const EngineOptions& options = {}) {
  const Instance instance{std::make_shared<const Topology>(topology), demand};
  EngineResult result = prepare_milp(instance, options, toolbox())(demand, options);
  if (result.schedule) {
    const ReplayResult replayed = replay(topology, demand, result.schedule->sends);
    EXPECT_TRUE(replayed.valid()) << replayed.violation.value_or("");
    EXPECT_NEAR(replayed.finish_us, result.schedule->finish_us, 1e-9);
  }
  return result;
}

struct Case {
  Collective collective;
  int chunks;
  int epochs;        ///< the optimum on the grid of 0.5 us
  double finish_us;  ///< at most
};

class Dgx1 : public ::testing::TestWithParam<Case> {};

TEST_P(Dgx1, ProvesTheOptimumOnItsGrid) {
  const Case& c = GetParam();
  const EngineResult result = run(dgx1(), make_demand(c.collective, 8 * 25e3 * c.chunks, 8, c.chunks));
  ASSERT_TRUE(result.schedule.has_value());
  EXPECT_EQ(result.metrics.at("proven_optimal_on_grid"), 1);
  EXPECT_EQ(result.metrics.at("grid_epochs"), c.epochs);
  EXPECT_NEAR(result.metrics.at("tau_us"), 0.5, 1e-12);
  EXPECT_NEAR(result.metrics.at("grid_finish_us"), 0.5 * c.epochs, 1e-9);
  EXPECT_LE(result.schedule->finish_us, c.finish_us + 1e-9);
  EXPECT_LE(result.schedule->finish_us, result.metrics.at("grid_finish_us") + 1e-9);
  ASSERT_FALSE(result.remarks.empty());
  EXPECT_TRUE(result.limits_hit.empty());
}

// Table 3 of TE-CCL has 3.4, 5 and 6.1 us for AllGather (the better of its columns) and 4 us for its own
// AllToAll.
INSTANTIATE_TEST_SUITE_P(Table3, Dgx1,
                         ::testing::Values(Case{Collective::allgather, 1, 7, 3.4},
                                           Case{Collective::allgather, 2, 9, 5},
                                           Case{Collective::allgather, 3, 10, 6.1},
                                           Case{Collective::alltoall, 1, 8, 3.7}));

TEST(MilpEngine, SendsNothingThatServesNoDemand) {
  const Demand demand = make_demand(Collective::alltoall, 8 * 25e3, 8, 1);
  const EngineResult result = run(dgx1(), demand);
  // 32 pairs are neighbours and 24 are two links apart.
  EXPECT_GE(result.schedule->sends.size(), 80u);
  for (std::size_t removed = 0; removed < result.schedule->sends.size(); ++removed) {
    std::vector<Send> sends = result.schedule->sends;
    sends.erase(sends.begin() + static_cast<std::ptrdiff_t>(removed));
    const ReplayResult replayed = replay(dgx1(), demand, sends);
    EXPECT_FALSE(replayed.valid()) << "send " << removed << " is not needed";
  }
}

Topology star(bool multicast, Forwarding forwarding) {
  TopologyData data;
  data.nodes.assign(4, Node{NodeKind::gpu});
  Node hub{NodeKind::switch_};
  hub.multicast = multicast;
  hub.forwarding = forwarding;
  data.nodes.push_back(hub);
  for (int g = 0; g < 4; ++g) {
    data.links.push_back({NodeId{g}, NodeId{4}, g == 0 ? 2.0 : 1.0, 0.3});
    data.links.push_back({NodeId{4}, NodeId{g}, g == 3 ? 0.5 : 1.0, 0.2});
  }
  return Topology(std::move(data));
}

TEST(MilpEngine, SchedulesThroughSwitchesAreValidAndNoLaterThanTheGrid) {
  for (const bool multicast : {false, true}) {
    for (const Forwarding forwarding : {Forwarding::cut_through, Forwarding::store_and_forward}) {
      for (const Collective collective :
           {Collective::allgather, Collective::alltoall, Collective::broadcast}) {
        const EngineResult result = run(star(multicast, forwarding), make_demand(collective, 4000, 4, 1));
        ASSERT_TRUE(result.schedule.has_value());
        EXPECT_EQ(result.metrics.at("proven_optimal_on_grid"), 1);
        EXPECT_LE(result.schedule->finish_us, result.metrics.at("grid_finish_us") + 1e-9);
      }
    }
  }
}

TEST(MilpEngine, KeepsTheListSchedulersScheduleWhereEpochsAreCoarse) {
  // Epochs of 2 us for a line whose chunks take 1 us a link: the grid loses half of each.
  TopologyData data;
  data.nodes.assign(3, Node{NodeKind::gpu});
  data.links = {{NodeId{0}, NodeId{1}, 1, 0}, {NodeId{1}, NodeId{2}, 1, 0}};
  EngineOptions options;
  options.epochs.multiplier = 2;
  const EngineResult result = run(Topology(data), make_demand(Collective::broadcast, 1000, 3, 1), options);
  EXPECT_NEAR(result.metrics.at("grid_finish_us"), 4, 1e-9);
  EXPECT_NEAR(result.schedule->finish_us, 2, 1e-9);
}

TEST(MilpEngine, TooFewEpochsAskedForAreRefused) {
  EngineOptions options;
  options.epochs.num_epochs = 6;
  try {
    run(dgx1(), make_demand(Collective::allgather, 8 * 25e3, 8, 1), options);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::unavailable);
    EXPECT_NE(std::string(error.what()).find("6 epochs"), std::string::npos) << error.what();
  }
}

TEST(MilpEngine, AnInterruptionLeavesTheListSchedulersSchedule) {
  const std::atomic<bool> interrupt{true};
  EngineOptions options;
  options.limits.interrupt = &interrupt;
  const EngineResult result = run(dgx1(), make_demand(Collective::allgather, 8 * 25e3, 8, 1), options);
  EXPECT_TRUE(result.schedule.has_value());
  EXPECT_EQ(result.limits_hit, (std::vector<std::string>{"interrupted"}));
  EXPECT_EQ(result.metrics.at("proven_optimal_on_grid"), 0);
}

TEST(MilpEngine, GivesTheSameScheduleAgain) {
  const Demand demand = make_demand(Collective::allgather, 8 * 25e3 * 2, 8, 2);
  const EngineResult first = run(dgx1(), demand);
  const EngineResult second = run(dgx1(), demand);
  ASSERT_EQ(first.schedule->sends.size(), second.schedule->sends.size());
  for (std::size_t i = 0; i < first.schedule->sends.size(); ++i) {
    EXPECT_EQ(first.schedule->sends[i].chunk, second.schedule->sends[i].chunk);
    EXPECT_EQ(first.schedule->sends[i].link, second.schedule->sends[i].link);
    EXPECT_EQ(first.schedule->sends[i].start_us, second.schedule->sends[i].start_us);
  }
}

// GPU 0 sends two chunks through a switch, 1 us each: the first to GPU 1, the second to GPUs 1 and 2. Both
// orders take 2 epochs. The second one first: two deliveries by the end of epoch 0, worth 1 + 1/2 each, and
// one by that of epoch 1, worth 1/2; the other way round one and two.
TEST(Milp, DeliversEarly) {
  TopologyData data;
  data.nodes.assign(4, Node{NodeKind::gpu});
  data.nodes[3].kind = NodeKind::switch_;
  data.links = {{NodeId{0}, NodeId{3}, 1, 0}, {NodeId{3}, NodeId{1}, 1, 0}, {NodeId{3}, NodeId{2}, 1, 0}};
  const Topology topology(std::move(data));
  const Demand demand(Collective::custom, 2000, 3,
                      {{.origin = GpuId{0}, .bytes = 1000, .destinations = {GpuId{1}}},
                       {.origin = GpuId{0}, .bytes = 1000, .destinations = {GpuId{1}, GpuId{2}}}},
                      1);
  EngineOptions options;
  options.early = true;
  const EngineResult early = run(topology, demand, options);
  ASSERT_TRUE(early.schedule.has_value());
  EXPECT_NEAR(early.schedule->finish_us, 2, 1e-9);
  EXPECT_EQ(early.metrics.at("tau_us"), 1);
  EXPECT_EQ(early.metrics.at("proven_earliest_on_grid"), 1);
  EXPECT_NEAR(early.metrics.at("early_delivery"), 3.5, 1e-9);
  for (const Send& send : early.schedule->sends)
    EXPECT_NEAR(send.start_us, send.chunk == ChunkId{1} ? 0 : 1, 1e-9);
  std::vector<Send> other = early.schedule->sends;
  for (Send& send : other) {
    send.start_us = 1 - send.start_us;
    send.end_us = send.arrival_us = send.start_us + 1;
  }
  EXPECT_NEAR(early_delivery(topology, demand, other, 1, 2), 2.5, 1e-9);
  EXPECT_NEAR(early_delivery(topology, demand, other, 2, 1), 3, 1e-9);
}

}  // namespace
}  // namespace rondo::test_milp
