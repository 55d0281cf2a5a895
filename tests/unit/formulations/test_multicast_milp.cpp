#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "rondo/core/error.hpp"
#include "rondo/formulations/formulations.hpp"
#include "rondo/solvers/solvers.hpp"

namespace rondo::test_multicast_milp {
namespace {

constexpr double kChunkBytes = 1000;  // 1 us at 1 GB/s

struct Edge {
  int src, dst;
  double bandwidth_GBps = 1;
  double latency_us = 0;
};

Topology fabric(int gpus, const std::vector<Edge>& edges, const std::vector<Node>& switches = {},
                const std::vector<SharedBandwidth>& shared = {}) {
  TopologyData data;
  data.nodes.assign(static_cast<std::size_t>(gpus), Node{NodeKind::gpu});
  data.nodes.insert(data.nodes.end(), switches.begin(), switches.end());
  for (const Edge& e : edges)
    data.links.push_back({NodeId{e.src}, NodeId{e.dst}, e.bandwidth_GBps, e.latency_us});
  data.shared_bandwidth = shared;
  return Topology(std::move(data));
}

Node make_switch(bool multicast, Forwarding forwarding = Forwarding::cut_through) {
  Node node{NodeKind::switch_};
  node.multicast = multicast;
  node.forwarding = forwarding;
  return node;
}

/// `chunks` chunks from GPU 0 to every other.
Demand broadcast(std::size_t gpus, int chunks = 1) {
  return make_demand(Collective::broadcast, kChunkBytes * chunks, gpus, chunks);
}

/// A chunk from GPU 0 to each of the others.
Demand scatter(std::size_t gpus) {
  return make_demand(Collective::scatter, kChunkBytes * static_cast<double>(gpus), gpus, 1);
}

Demand allgather(std::size_t gpus) {
  return make_demand(Collective::allgather, kChunkBytes * static_cast<double>(gpus), gpus, 1);
}

BuiltModel build(const Topology& topology, const Demand& demand, int epochs) {
  Instance instance{std::make_shared<const Topology>(topology), demand,
                    make_epoch_grid(topology, demand, {})};
  instance.grid->num_epochs = epochs;
  return multicast_milp(instance);
}

struct Optimum {
  int epochs = 0;
  FlowField field;
};

/// The least number of epochs; every smaller one has been proven infeasible.
Optimum solve(const Topology& topology, const Demand& demand) {
  const auto solver = make_cbc_solver();
  for (int epochs = 1; epochs <= 20; ++epochs) {
    const BuiltModel built = build(topology, demand, epochs);
    const Solution solution = solver->solve(built.model, {});
    if (solution.status == SolveStatus::infeasible) continue;
    EXPECT_EQ(solution.status, SolveStatus::optimal);
    return {epochs, built.decode(solution)};
  }
  ADD_FAILURE() << "no schedule in 20 epochs";
  return {};
}

int least_epochs(const Topology& topology, const Demand& demand) {
  return solve(topology, demand).epochs;
}

bool has(const FlowField& field, int chunk, int link, int epoch) {
  return std::any_of(field.entries.begin(), field.entries.end(), [&](const FlowField::Entry& entry) {
    return entry.commodity == chunk && entry.link == LinkId{link} && entry.epoch == epoch;
  });
}

TEST(MulticastMilp, LineRelays) {
  const Topology line = fabric(3, {{0, 1}, {1, 2}});
  const Optimum optimum = solve(line, broadcast(3));
  EXPECT_EQ(optimum.epochs, 2);
  EXPECT_EQ(optimum.field.entries.size(), 2u);
  EXPECT_TRUE(has(optimum.field, 0, 0, 0));
  EXPECT_TRUE(has(optimum.field, 0, 1, 1));
  EXPECT_DOUBLE_EQ(optimum.field.finish_us, 2);
}

TEST(MulticastMilp, LinePipelines) {
  EXPECT_EQ(least_epochs(fabric(3, {{0, 1}, {1, 2}}), broadcast(3, 2)), 3);
  EXPECT_EQ(least_epochs(fabric(4, {{0, 1}, {1, 2}, {2, 3}}), broadcast(4, 3)), 5);
}

TEST(MulticastMilp, RingUsesBothDirections) {
  const std::vector<Edge> one_path{{0, 1}, {1, 2}, {2, 3}, {3, 0}};
  std::vector<Edge> both = one_path;
  for (const Edge& e : one_path) both.push_back({e.dst, e.src});
  EXPECT_EQ(least_epochs(fabric(4, one_path), allgather(4)), 3);
  EXPECT_EQ(least_epochs(fabric(4, both), allgather(4)), 2);
}

TEST(MulticastMilp, LatencyDelaysButDoesNotOccupy) {
  // 1 us on the link, 1.5 us behind it: 3 epochs; the second chunk follows an epoch later.
  const Topology line = fabric(2, {{0, 1, 1, 1.5}});
  EXPECT_EQ(least_epochs(line, broadcast(2)), 3);
  EXPECT_EQ(least_epochs(line, broadcast(2, 2)), 4);
}

TEST(MulticastMilp, ASlowLinkIsOccupiedForSeveralEpochs) {
  // Epochs of 0.5 us: an epoch on 0 -> 1, two on 1 -> 2, so chunks land at 2 in epochs 3 and 5.
  const Topology line = fabric(3, {{0, 1, 2}, {1, 2, 1}});
  const Demand two(Collective::custom, 2 * kChunkBytes, 3, {{GpuId{0}, 2 * kChunkBytes, {GpuId{2}}}}, 2);
  EXPECT_EQ(least_epochs(line, two), 5);
}

TEST(MulticastMilp, ASwitchCopiesOnlyIfItCan) {
  const std::vector<Edge> star{{0, 3}, {3, 1}, {3, 2}, {1, 3}};
  const Optimum copied = solve(fabric(3, star, {make_switch(true)}), broadcast(3));
  EXPECT_EQ(copied.epochs, 1);
  EXPECT_EQ(copied.field.entries.size(), 3u);
  const Optimum sent_twice = solve(fabric(3, star, {make_switch(false)}), broadcast(3));
  EXPECT_EQ(sent_twice.epochs, 2);
  EXPECT_EQ(sent_twice.field.entries.size(), 4u);
}

TEST(MulticastMilp, StarIsBoundByItsDownlinks) {
  std::vector<Edge> star;
  for (int g = 0; g < 4; ++g) {
    star.push_back({g, 4});
    star.push_back({4, g});
  }
  EXPECT_EQ(least_epochs(fabric(4, star, {make_switch(true)}), allgather(4)), 3);
  EXPECT_EQ(least_epochs(fabric(4, star, {make_switch(false)}), allgather(4)), 3);
}

TEST(MulticastMilp, CutThroughWaitsForTheBitsNotForTheChunk) {
  const std::vector<Edge> path{{0, 2, 1, 0.5}, {2, 1, 1, 0.5}};
  EXPECT_EQ(least_epochs(fabric(2, path, {make_switch(false)}), broadcast(2)), 2);  // 1 + 0.5 + 0.5
  EXPECT_EQ(least_epochs(fabric(2, path, {make_switch(false, Forwarding::store_and_forward)}), broadcast(2)),
            3);
}

TEST(MulticastMilp, ASlowDownlinkTakesAShareOfItsUplinkBehindACutThroughSwitch) {
  // Epochs of 0.5 us. Cut-through: three transfers of 1 us, two at a time on the uplink. Store-and-forward:
  // the uplink takes 0.5 us for each, the last one leaves the switch at 1.5 us and takes 1 us.
  const std::vector<Edge> star{{0, 4, 2}, {4, 1, 1}, {4, 2, 1}, {4, 3, 1}};
  EXPECT_EQ(least_epochs(fabric(4, star, {make_switch(false)}), scatter(4)), 4);
  EXPECT_EQ(least_epochs(fabric(4, star, {make_switch(false, Forwarding::store_and_forward)}), scatter(4)),
            5);
}

TEST(MulticastMilp, ATransferRunsAtTheRateOfItsSlowestLink) {
  // Epochs of 0.5 us: 1 to GPU 1 alone, 2 to GPU 2 alone or to both at once.
  const std::vector<Edge> star{{0, 3, 2}, {3, 1, 2}, {3, 2, 1}};
  EXPECT_EQ(least_epochs(fabric(3, star, {make_switch(true)}), scatter(3)), 3);
  EXPECT_EQ(least_epochs(fabric(3, star, {make_switch(true)}), broadcast(3)), 2);
  EXPECT_EQ(least_epochs(fabric(3, star, {make_switch(false)}), broadcast(3)), 3);
}

TEST(MulticastMilp, TransfersMeetBehindASwitchAtRealTimes) {
  // 0 and 1 send to 2. From 1 the bits reach the switch half a microsecond later, so that starts in one epoch
  // overlap on the downlink for half a microsecond: one of them has to wait.
  const std::vector<Edge> star{{0, 3, 1, 0}, {1, 3, 1, 0.5}, {3, 2, 1, 0}};
  const Topology topology = fabric(3, star, {make_switch(false)});
  const Demand demand(Collective::custom, 2 * kChunkBytes, 3,
                      {{GpuId{0}, kChunkBytes, {GpuId{2}}}, {GpuId{1}, kChunkBytes, {GpuId{2}}}}, 1);
  // 0 at 0 (ends 1), 1 at 1 (on the downlink from 1.5 to 2.5); or 1 at 0 (to 1.5), 0 at 2 (to 3): 3 epochs.
  EXPECT_EQ(least_epochs(topology, demand), 3);
}

TEST(MulticastMilp, SharedBandwidthSumsRates) {
  const std::vector<Edge> edges{{0, 1}, {0, 2}};
  EXPECT_EQ(least_epochs(fabric(3, edges), scatter(3)), 1);
  const SharedBandwidth nic{"nic", {LinkId{0}, LinkId{1}}, 1};
  EXPECT_EQ(least_epochs(fabric(3, edges, {}, {nic}), scatter(3)), 2);
}

TEST(MulticastMilp, DataIsNotSentBeforeItIsReady) {
  const Demand late(Collective::custom, kChunkBytes, 2, {{GpuId{0}, kChunkBytes, {GpuId{1}}, 1.5}}, 1);
  EXPECT_EQ(least_epochs(fabric(2, {{0, 1}}), late), 3);
}

TEST(MulticastMilp, TooFewEpochsToReachADestinationAreInfeasible) {
  const BuiltModel built = build(fabric(3, {{0, 1}, {1, 2}}), broadcast(3), 1);
  EXPECT_EQ(make_cbc_solver()->solve(built.model, {}).status, SolveStatus::infeasible);
}

/// Two chunks down a line of three, the second one first.
Schedule second_chunk_first() {
  return {{{ChunkId{1}, LinkId{0}, 0, 1, 1},
           {ChunkId{0}, LinkId{0}, 1, 2, 2},
           {ChunkId{1}, LinkId{1}, 1, 2, 2},
           {ChunkId{0}, LinkId{1}, 2, 3, 3}},
          3};
}

TEST(MulticastMilp, EncodesASchedule) {
  const Topology line = fabric(3, {{0, 1}, {1, 2}});
  const BuiltModel built = build(line, broadcast(3, 2), 3);
  const auto x = built.encode(second_chunk_first());
  ASSERT_TRUE(x.has_value());
  EXPECT_LE(max_violation(built.model, *x), 1e-9);
  Solution solution;
  solution.x = *x;
  const FlowField field = built.decode(solution);
  EXPECT_EQ(field.entries.size(), 4u);
  // The model wants the chunks in order; they are interchangeable.
  EXPECT_TRUE(has(field, 0, 0, 0));
  EXPECT_TRUE(has(field, 1, 1, 2));
}

TEST(MulticastMilp, EncodesTransfersThroughASwitch) {
  const Topology star = fabric(3, {{0, 3}, {3, 1}, {3, 2}}, {make_switch(true)});
  const BuiltModel built = build(star, broadcast(3), 1);
  const Schedule copied{
      {{ChunkId{0}, LinkId{0}, 0, 1, 1}, {ChunkId{0}, LinkId{1}, 0, 1, 1}, {ChunkId{0}, LinkId{2}, 0, 1, 1}},
      1};
  EXPECT_TRUE(built.encode(copied).has_value());
}

TEST(MulticastMilp, DoesNotEncodeWhatDoesNotFit) {
  const Topology line = fabric(3, {{0, 1}, {1, 2}});
  EXPECT_FALSE(build(line, broadcast(3, 2), 2).encode(second_chunk_first()).has_value());
  Schedule incomplete = second_chunk_first();
  incomplete.sends.pop_back();
  EXPECT_FALSE(build(line, broadcast(3, 2), 3).encode(incomplete).has_value());
  Schedule overlapping = second_chunk_first();
  overlapping.sends[1].start_us = 0;
  EXPECT_FALSE(build(line, broadcast(3, 2), 3).encode(overlapping).has_value());
}

TEST(MulticastMilp, RefusesWhatIsBeyondItsCap) {
  std::vector<Edge> all;
  for (int a = 0; a < 32; ++a) {
    for (int b = 0; b < 32; ++b) {
      if (a != b) all.push_back({a, b});
    }
  }
  try {
    build(fabric(32, all), allgather(32), 100);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::unavailable);
    EXPECT_NE(std::string(error.what()).find("2000000"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace rondo::test_multicast_milp
