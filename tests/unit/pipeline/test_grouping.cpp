#include <gtest/gtest.h>

#include "grouped_sums.hpp"
#include "grouping.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/core/verify.hpp"
#include "rondo/pipeline/synthesize.hpp"
#include "sums_in_parts.hpp"
#include "topologies.hpp"

namespace rondo::test_grouping {
namespace {

std::vector<GpuId> gpus(const std::vector<int>& numbers) {
  std::vector<GpuId> all;
  for (const int n : numbers) all.emplace_back(n);
  return all;
}

/// Two chassis of four GPUs each, all joined at 100 GB/s and 1 us; GPU 0 of each sends to GPU 1 of the other
/// at 10 GB/s and 5 us, where a message costs `message_us`.
std::shared_ptr<const Topology> two_chassis(double message_us = 0) {
  TopologyData data;
  data.name = "two-chassis";
  data.nodes = std::vector<Node>(8);
  for (int a = 0; a < 8; ++a) {
    data.nodes[static_cast<std::size_t>(a)].chassis = a / 4;
    for (int b = a / 4 * 4; b < a / 4 * 4 + 4; ++b) {
      if (a != b) data.links.push_back({NodeId{a}, NodeId{b}, 100, 1});
    }
  }
  data.links.push_back({NodeId{0}, NodeId{5}, 10, 5});
  data.links.push_back({NodeId{4}, NodeId{1}, 10, 5});
  for (std::size_t l = data.links.size() - 2; l < data.links.size(); ++l)
    data.links[l].message_us = message_us;
  return std::make_shared<const Topology>(data);
}

SynthesisResult solve(const std::shared_ptr<const Topology>& topology, double bytes,
                      SolveOptions options = {}) {
  options.improve_work = 1e4;
  const Demand demand = make_demand(Collective::allreduce, bytes, topology->num_gpus(), 1);
  SynthesisResult result = synthesize({topology, demand, options}, {*make_local_communicator()});
  verify(result.proven);
  return result;
}

TEST(Groupings, SendersAndTakersOfTheLinksBetween) {
  const auto topology = two_chassis();
  const auto found = groupings_of(*topology, make_demand(Collective::allreduce, 1000, 8, 1));
  ASSERT_TRUE(found);
  // Five and one to the sender, and one from the taker.
  EXPECT_NEAR(found->halves.latency_us, 2 * 7, 1e-9);
  ASSERT_FALSE(found->others.empty());
  const Grouping& first = found->others.front();
  EXPECT_EQ(first.groups, (std::vector<std::vector<GpuId>>{gpus({0, 1, 2, 3}), gpus({4, 5, 6, 7})}));
  EXPECT_EQ(first.adders, (std::vector<std::vector<GpuId>>{gpus({0}), gpus({4})}));
  EXPECT_EQ(first.takers, (std::vector<std::vector<GpuId>>{gpus({1}), gpus({5})}));
  EXPECT_EQ(first.exchanging(), std::vector<std::vector<GpuId>>{gpus({0, 1, 4, 5})});
  EXPECT_NEAR(first.latency_us, 1 + 5 + 1, 1e-4);
  EXPECT_FALSE(groupings_of(*topology, make_demand(Collective::allgather, 1000, 8, 1)));
}

// 1 us to the senders, 5 to the other chassis, 1 from the takers on, and 0.01 + 0.1 + 0.01 us for the bytes
// of whole buffers. `auto` ends as early, be it by `exchange` in an order of its own.
TEST(InGroups, SumsPassTheLinksBetweenOnce) {
  const auto topology = two_chassis();
  const Demand demand = make_demand(Collective::allreduce, 1000, topology->num_gpus(), 1);
  const auto groupings = groupings_of(*topology, demand);
  ASSERT_TRUE(groupings);
  const auto grouped =
      solve_in_groups({topology, demand, {}}, groupings->others.front(), false, {*make_local_communicator()});
  ASSERT_TRUE(grouped);
  EXPECT_TRUE(grouped->engine.starts_with("groups/")) << grouped->engine;
  for (const double finish_us :
       {grouped->found.schedule->finish_us, solve(topology, 1000).proven.schedule.finish_us}) {
    EXPECT_LE(finish_us, 7.12 + 1e-3);
    EXPECT_GE(finish_us, 7.1);
  }
}

/// Chunk after chunk, each in 1 us over `chunks`, between the group's first or second GPU and all others of
/// it.
std::vector<Send> within_groups(const Topology& topology, int gpu, SendOp op, int chunks = 1) {
  std::vector<Send> sends;
  for (std::size_t l = 0; l < topology.num_links(); ++l) {
    const Link& link = topology.link(LinkId(l));
    const int group = link.src.value / 4;
    const NodeId here = op == SendOp::reduce ? link.dst : link.src;
    if (link.dst.value / 4 != group || here.value != 4 * group + gpu) continue;
    for (int c = 0; c < chunks; ++c) {
      const double end_us = (c + 1.0) / chunks;
      Send send{.chunk = ChunkId{group * chunks + c},
                .link = LinkId(l),
                .start_us = static_cast<double>(c) / chunks,
                .end_us = end_us,
                .arrival_us = end_us + 1};
      send.op = op;
      sends.push_back(send);
    }
  }
  return sends;
}

// 2 us, 15 us and 2 us one after the other; in slices the first one is in the next step after 1 us and little
// more, and goes on meanwhile.
TEST(InGroups, SlicesOverlap) {
  const auto topology = two_chassis();
  const Demand demand = make_demand(Collective::allreduce, 1e5, 8, 1);
  const Groupings found = *groupings_of(*topology, demand);
  const auto ends_us = [&](int most_slices) {
    const auto made =
        in_groups(*topology, demand, found.others.front(), 1, most_slices, 0,
                  within_groups(*topology, 0, SendOp::reduce), within_groups(*topology, 1, SendOp::copy));
    EXPECT_TRUE(made);
    const ReplayResult replayed = replay(*topology, demand.with_chunks(made->chunks), made->schedule.sends);
    EXPECT_TRUE(replayed.valid()) << *replayed.violation;
    return replayed.finish_us;
  };
  EXPECT_NEAR(ends_us(1), 19, 1e-3);
  EXPECT_LE(ends_us(16), 17.2);
}

// 2 us until all four chunks are there, 3 + 10 + 5 us as one message, and 2 us more; each one by itself would
// be whole after 1.25 + 4 * (3 + 2.5) + 5 us.
TEST(InGroups, ChunksCrossTogetherWhereMessagesCost) {
  const auto topology = two_chassis(3);
  const Demand demand = make_demand(Collective::allreduce, 1e5, 8, 1);
  const Groupings found = *groupings_of(*topology, demand);
  ASSERT_FALSE(found.others.empty());
  const auto made =
      in_groups(*topology, demand, found.others.front(), 4, 1, 0,
                within_groups(*topology, 0, SendOp::reduce, 4), within_groups(*topology, 1, SendOp::copy, 4));
  ASSERT_TRUE(made);
  const ReplayResult replayed = replay(*topology, demand.with_chunks(4), made->schedule.sends);
  ASSERT_TRUE(replayed.valid()) << *replayed.violation;
  EXPECT_NEAR(replayed.finish_us, 22, 1e-3);
}

// In a box of eight GPUs that each have one link, messages that bring all that is known reach two, four, then
// eight of them; rails lead to GPUs of the other box alone.
TEST(Groupings, HearByMessagesThatDouble) {
  const auto rails = generated("rails", {{"boxes", "2"},
                                         {"gpus", "8"},
                                         {"nvlink_latency_us", "0"},
                                         {"nic_latency_us", "0"},
                                         {"message_us", "0.5"},
                                         {"inter_message_us", "3"}});
  const Demand demand = make_demand(Collective::allreduce, 1, 16, 1);
  const Groupings found = *groupings_of(*rails, demand);
  const auto in_boxes = std::ranges::find_if(
      found.others, [](const Grouping& g) { return g.groups.size() == 2 && g.num_parts() == 8; });
  ASSERT_NE(in_boxes, found.others.end());
  EXPECT_NEAR(in_boxes->latency_us, 3 * 0.5 + 3 + 3 * 0.5, 1e-4);
}

TEST(InGroups, HeedsTheChunksThatAreAskedFor) {
  SolveOptions options;
  options.chunks = 3;
  const SynthesisResult result = solve(two_chassis(), 30000, options);
  EXPECT_EQ(result.proven.demand.chunks_per_contribution(), 3);
}

// The middle GPU of a line of five is two links from the ends, which are four apart.
TEST(InGroups, GpusInTheMiddleAddUp) {
  const auto line = generated("mesh", {{"dims", "5"}});
  const auto found = groupings_of(*line, make_demand(Collective::allreduce, 1000, 5, 1));
  ASSERT_TRUE(found);
  ASSERT_FALSE(found->others.empty());
  EXPECT_EQ(found->others.front().adders, std::vector<std::vector<GpuId>>{gpus({2})});
  EXPECT_NEAR(found->others.front().latency_us, found->halves.latency_us / 2, 1e-9);
  const SynthesisResult result = solve(line, 1000);
  EXPECT_LE(result.proven.schedule.finish_us, 1.1 * found->others.front().latency_us);
}

// Each leaf adds up, which takes 1 us, and all hear from each GPU there 2 us later; spreading in the leaves
// would take 1 us more.
TEST(InGroups, SwitchesThatCopyTellAll) {
  const auto topology = generated("fat_tree", {{"leaves", "4"}, {"gpus", "4"}, {"spines", "2"}});
  const auto found = groupings_of(*topology, make_demand(Collective::allreduce, 4000, 16, 1));
  ASSERT_TRUE(found);
  const auto told = std::ranges::find_if(found->others, &Grouping::tells);
  ASSERT_NE(told, found->others.end());
  EXPECT_EQ(told->groups.size(), 4U);
  EXPECT_NEAR(told->latency_us, 3, 1e-3);
  const SynthesisResult result = solve(topology, 4000);
  EXPECT_LE(result.proven.schedule.finish_us, 1.02 * told->about_us);
  EXPECT_LT(result.proven.schedule.finish_us, 4);
}

}  // namespace
}  // namespace rondo::test_grouping
