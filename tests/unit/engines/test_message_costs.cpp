// Every engine on links that a message keeps for longer than its bytes.

#include <gtest/gtest.h>

#include "expect_error.hpp"
#include "fabrics.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/engines/engines.hpp"

namespace rondo::test_message_costs {
namespace {

using Prepare = PreparedEngine (*)(const Instance&, const EngineOptions&, const Toolbox&);

std::shared_ptr<const Topology> with_message_costs(const Topology& topology, double message_us) {
  TopologyData data = topology.data();
  for (Link& link : data.links) link.message_us = message_us;
  return std::make_shared<const Topology>(std::move(data));
}

Schedule schedule_of(Prepare prepare, const std::shared_ptr<const Topology>& topology, const Demand& demand) {
  EngineResult result = prepare({topology, demand}, {}, tools())(demand, {});
  EXPECT_TRUE(result.schedule);
  return std::move(*result.schedule);
}

/// No transfer keeps a link for less than its bytes and its message; none begins before the one before ends.
void expect_alone(const Topology& topology, const Schedule& schedule, double least_us) {
  std::vector<double> free_us(topology.num_links(), 0);
  for (const Send& send : schedule.sends) {
    EXPECT_GE(send.start_us, free_us[send.link.index()] - 1e-6);
    EXPECT_GE(send.end_us - send.start_us, least_us - 1e-6);
    free_us[send.link.index()] = send.end_us;
  }
}

TEST(MessageCosts, KeepTheLinksOfEveryEngine) {
  // Two GPUs, one link each way at 1 GB/s: two chunks of 500 us, each with a message of 10 us, latency 1 us.
  const auto pair = with_message_costs(*fabric({gpu(), gpu()}, {link(0, 1), link(1, 0)}), 10);
  const Demand all = make_demand(Collective::allgather, 2 * kMB, 2, 2);
  for (Prepare prepare : {prepare_list, prepare_queue, prepare_trees, prepare_milp}) {
    const Schedule schedule = schedule_of(prepare, pair, all);
    EXPECT_NEAR(schedule.finish_us, 1021, 1e-6);
    expect_alone(*pair, schedule, 510);
  }
  const Demand each = make_demand(Collective::alltoall, 2 * kMB, 2, 2);
  for (Prepare prepare : {prepare_list, prepare_flow, prepare_lp}) {
    const Schedule schedule = schedule_of(prepare, pair, each);
    EXPECT_NEAR(schedule.finish_us, 1021, 1e-6);
    expect_alone(*pair, schedule, 510);
  }
}

TEST(MessageCosts, ArePaidOnceThroughASwitch) {
  // Three GPUs around a switch. Every link into a GPU carries two chunks of 1000 us.
  const auto around = with_message_costs(*star(3), 10);
  const Demand all = make_demand(Collective::allgather, 3 * kMB, 3, 1);
  for (Prepare prepare : {prepare_list, prepare_queue, prepare_trees}) {
    const Schedule schedule = schedule_of(prepare, around, all);
    EXPECT_GE(schedule.finish_us, 2022 - 1e-6);
    EXPECT_LE(schedule.finish_us, 2024 + 1e-6);  // where a chunk is relayed
    expect_alone(*around, schedule, 1010);
  }
}

TEST(MessageCosts, OfOneSectionHaveToBeEqualForTheModel) {
  TopologyData data = star(3)->data();
  data.links[1].message_us = 5;
  const auto uneven = std::make_shared<const Topology>(std::move(data));
  const Demand demand = make_demand(Collective::allgather, 3 * kMB, 3, 1);
  expect_error(ExitCode::unavailable, {"links 1 and", "message_us", "engine list"},
               [&] { schedule_of(prepare_milp, uneven, demand); });
}

TEST(MessageCosts, ArePaidOnceByShortChunksThatGoTogether) {
  // InfiniBand as TACCL has it (106 us/MB, 1.7 us); two chunks of 8 KB, 0.848 us each.
  const auto pair = with_message_costs(*fabric({gpu(), gpu()}, {link(0, 1, 1000.0 / 106, 0)}), 1.7);
  const Demand demand = make_demand(Collective::broadcast, 16e3, 2, 2);
  EngineOptions options;
  const auto finish_us = [&](const std::string& policy) {
    options.policy = policy;
    const Schedule schedule = *prepare_list({pair, demand}, {}, tools())(demand, options).schedule;
    const ReplayResult replayed = replay(*pair, demand, schedule.sends);
    EXPECT_TRUE(replayed.valid()) << *replayed.violation;
    EXPECT_DOUBLE_EQ(replayed.finish_us, schedule.finish_us);
    return schedule.finish_us;
  };
  EXPECT_NEAR(finish_us("furthest"), 2 * (1.7 + 0.848), 1e-9);
  EXPECT_NEAR(finish_us("furthest-joined"), 1.7 + 2 * 0.848, 1e-9);
}

TEST(MessageCosts, LongChunksAreNotAllJoined) {
  // 0 -> 1 -> 2 at 1 GB/s, messages of 10 us, 8 chunks of 1000 us: together they would arrive at 2 x 8010 us.
  const auto chain =
      with_message_costs(*fabric({gpu(), gpu(), gpu()}, {link(0, 1, 1, 0), link(1, 2, 1, 0)}), 10);
  const Demand demand = make_demand(Collective::broadcast, 8 * kMB, 3, 8);
  EngineOptions options;
  options.policy = "furthest-joined";
  const Schedule schedule = *prepare_list({chain, demand}, {}, tools())(demand, options).schedule;
  EXPECT_TRUE(replay(*chain, demand, schedule.sends).valid());
  EXPECT_LT(schedule.finish_us, 14000);
}

double pairwise_finish_us(const std::shared_ptr<const Topology>& topology, const Demand& demand,
                          std::uint64_t seed) {
  EngineOptions options;
  options.policy = "pairwise-joined";
  options.seed = seed;
  const Schedule schedule = *prepare_list({topology, demand}, options, tools())(demand, options).schedule;
  EXPECT_TRUE(replay(*topology, demand, schedule.sends).valid());
  return schedule.finish_us;
}

/// Four GPUs around a switch that does not copy; no latency, messages of 10 us.
std::shared_ptr<const Topology> around_a_switch() {
  TopologyData data = star(4)->data();
  data.nodes.back().multicast = false;
  for (Link& link : data.links) link.latency_us = 0;
  return with_message_costs(Topology(std::move(data)), 10);
}

TEST(MessageCosts, PairsExchangeAllTheyHave) {
  // 1000 bytes take 1 us: a GPU knows two chunks after one message and four after two (recursive doubling);
  // taken one by one it would be 33 us.
  EXPECT_NEAR(pairwise_finish_us(around_a_switch(), make_demand(Collective::allgather, 4000, 4, 1), 0),
              11 + 12, 1e-9);
}

/// `chassis` times 16 GPUs, each around a switch of its own that does not copy, messages of 10 us; the first
/// GPUs of two chassis are joined by messages of 25 us. A byte takes 0.001 us.
std::shared_ptr<const Topology> chassis_of_16(int chassis) {
  std::vector<Node> nodes;
  std::vector<Link> links;
  for (int c = 0; c < chassis; ++c) {
    for (int g = 0; g < 16; ++g) nodes.push_back(gpu());
  }
  for (int c = 0; c < chassis; ++c) {
    const int at = static_cast<int>(nodes.size());
    nodes.push_back({.kind = NodeKind::switch_, .multicast = false});
    for (int g = 16 * c; g < 16 * (c + 1); ++g) {
      links.push_back(link(g, at, 1, 0));
      links.push_back(link(at, g, 1, 0));
    }
  }
  for (Link& l : links) l.message_us = 10;
  for (int c = 1; c < chassis; ++c) {
    for (Link joint : {link(0, 16 * c, 1, 0), link(16 * c, 0, 1, 0)}) {
      joint.message_us = 25;
      links.push_back(joint);
    }
  }
  return fabric(std::move(nodes), std::move(links));
}

TEST(MessageCosts, PairsByNumberLeaveNobodyOver) {
  // Four messages, of 1, 2, 4 and 8 bytes. Were pairs found by chance, some GPUs would be left without one
  // that can tell them as much, and need a fifth.
  EXPECT_NEAR(pairwise_finish_us(chassis_of_16(1), make_demand(Collective::allgather, 16, 16, 1), 0),
              4 * 10 + 0.015, 1e-9);
}

TEST(MessageCosts, ADearMessageWaitsForAllOfAChassis) {
  // Four messages until 40.015, all 16 chunks over the joint until 65.031, four messages of 16 bytes more. A
  // second dear message would come to 80 at the earliest, one chunk from it to all 16 GPUs four more.
  EXPECT_NEAR(pairwise_finish_us(chassis_of_16(2), make_demand(Collective::allgather, 32, 32, 1), 8),
              40.015 + 25.016 + 4 * 10.016, 1e-9);
}

TEST(MessageCosts, AllToAllTakesTheTreesOfAnAllGather) {
  // There 1000 bytes for each other GPU take two messages as well, of 2000 bytes each: what is for the
  // partner's later partner goes through the partner. One by one it would be 33 us.
  for (const int chunks : {1, 3}) {
    const Demand demand = make_demand(Collective::alltoall, 4000, 4, chunks);
    EXPECT_NEAR(pairwise_finish_us(around_a_switch(), demand, 0), 2 * 12, 1e-9);
  }
}

TEST(MessageCosts, ADearMessageWaitsForMore) {
  // Pairs 0, 1 and 2, 3 with messages of 1 us; 0 and 2 are joined by messages of 10 us. 1000 bytes take 1 us.
  TopologyData data =
      fabric({gpu(), gpu(), gpu(), gpu()}, {link(0, 1, 1, 0), link(1, 0, 1, 0), link(2, 3, 1, 0),
                                            link(3, 2, 1, 0), link(0, 2, 1, 0), link(2, 0, 1, 0)})
          ->data();
  for (std::size_t l = 0; l < data.links.size(); ++l) data.links[l].message_us = l < 4 ? 1 : 10;
  const auto pairs = std::make_shared<const Topology>(std::move(data));
  const Demand demand = make_demand(Collective::allgather, 4000, 4, 1);
  // At once: chunk 0 and 2 until 11, 1 and 3 until 22, which then take 2 more.
  EXPECT_NEAR(pairwise_finish_us(pairs, demand, 0), 22 + 2, 1e-9);
  // Two together: known after 2, over after 14, passed on until 17.
  EXPECT_NEAR(pairwise_finish_us(pairs, demand, 2), 2 + 12 + 3, 1e-9);
}

}  // namespace
}  // namespace rondo::test_message_costs
