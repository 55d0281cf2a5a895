// The replay in parts finds what the replay finds, whoever holds which chunks.

#include <gtest/gtest.h>

#include "replay_by_parts.hpp"
#include "topologies.hpp"

namespace rondo::test_replay_parts {
namespace {

Send send(int chunk, int link, double start_us, double us = 1000) {
  return {ChunkId{chunk}, LinkId{link}, start_us, start_us + us, start_us + us + 1};
}

/// AllGather of 1 MB a GPU around a ring of three: both steps, each chunk over two links.
std::vector<Send> around_the_ring() {
  return {send(0, 0, 0), send(1, 1, 0), send(2, 2, 0), send(0, 1, 1001), send(1, 2, 1001), send(2, 0, 1001)};
}

Demand of_ring() {
  return make_demand(Collective::allgather, 3 * kMB, 3, 1);
}

TEST(ReplayInParts, OfARingByHand) {
  const ReplayResult result = replay_both_ways(*one_way_ring(3), of_ring(), around_the_ring());
  ASSERT_TRUE(result.valid()) << *result.violation;
  EXPECT_DOUBLE_EQ(result.finish_us, 2002);
}

void expect_violation(const Topology& topology, const Demand& demand, const std::vector<Send>& sends,
                      const std::string& part_of_it) {
  const ReplayResult result = replay_both_ways(topology, demand, sends);
  ASSERT_FALSE(result.valid());
  EXPECT_NE(result.violation->find(part_of_it), std::string::npos) << *result.violation;
}

TEST(ReplayInParts, ASendBeforeItsData) {
  std::vector<Send> sends = around_the_ring();
  sends[3] = send(0, 1, 1000.5);
  expect_violation(*one_way_ring(3), of_ring(), sends, "holds the chunk only from 1001 us");
}

TEST(ReplayInParts, AnOverfullLinkOfTwoOwners) {
  // On three ranks chunks 0 and 1, which meet on link 1, are held by two of them, and neither sees it alone.
  std::vector<Send> sends = around_the_ring();
  sends[1] = send(1, 1, 500);
  sends[4] = send(1, 2, 1501);
  expect_violation(*one_way_ring(3), of_ring(), sends, "rule 1: chunk 0 over link 1");
}

TEST(ReplayInParts, AMissingDelivery) {
  std::vector<Send> sends = around_the_ring();
  sends.erase(sends.begin() + 4);
  expect_violation(*one_way_ring(3), of_ring(), sends, "chunk 1 never arrives at GPU 0");
}

TEST(ReplayInParts, AnOverfullGroupOfLinks) {
  // All three links share 2 GB/s, which two of them at a time would fill.
  const auto ring = fabric({gpu(), gpu(), gpu()}, {link(0, 1), link(1, 2), link(2, 0)},
                           {{"bus", {LinkId{0}, LinkId{1}, LinkId{2}}, 2}});
  expect_violation(*ring, of_ring(), around_the_ring(), "rule 6");
}

TEST(ReplayInParts, AnIllFormedSend) {
  std::vector<Send> sends = around_the_ring();
  sends[2].link = LinkId{7};
  expect_violation(*one_way_ring(3), of_ring(), sends, "link 7 does not exist");
}

TEST(ReplayInParts, MoreThanIsLookedAtAtOnce) {
  // A chunk for each of 1200 steps around a ring of 300 GPUs: 358,800 sends, which the replay takes in parts.
  const auto ring = one_way_ring(300);
  const Demand demand = make_demand(Collective::allgather, 300 * kMB, 300, 4);
  std::vector<Send> sends;
  for (int step = 0; step < 299; ++step) {
    for (int k = 0; k < 4; ++k) {
      for (int g = 0; g < 300; ++g)
        sends.push_back(send(4 * ((g + 300 - step) % 300) + k, g, 1001.0 * step + 250 * k, 250));
    }
  }
  const ReplayResult result = replay(*ring, demand, sends);
  ASSERT_TRUE(result.valid()) << *result.violation;
  EXPECT_DOUBLE_EQ(result.finish_us, 298 * 1001.0 + 1001);
  std::vector<Send> early = sends;
  early[200'000].start_us -= 1;
  early[200'000].end_us -= 1;
  early[200'000].arrival_us -= 1;
  const ReplayResult refused = replay(*ring, demand, early);
  ASSERT_FALSE(refused.valid());
  EXPECT_EQ(refused.violation, replay_by_parts(*ring, demand, early, 2).violation);
}

TEST(LinkGroups, KeepLinksThatShareTogether) {
  const auto ring = fabric({gpu(), gpu(), gpu()}, {link(0, 1), link(1, 2), link(2, 0), link(2, 1)},
                           {{"a", {LinkId{3}, LinkId{0}}, 2}, {"b", {LinkId{2}, LinkId{3}}, 2}});
  const auto groups = link_groups(*ring, {1, 1, 1, 1}, 1);
  EXPECT_EQ(groups, (std::vector<std::vector<LinkId>>{{LinkId{0}, LinkId{2}, LinkId{3}}, {LinkId{1}}}));
}

TEST(ChunkRange, EveryChunkHasOneRank) {
  for (const int ranks : {1, 2, 3, 8}) {
    for (const std::size_t chunks : {1, 2, 7, 64}) {
      for (std::size_t c = 0; c < chunks; ++c) {
        const int rank = rank_of_chunk(ChunkId{c}, chunks, ranks);
        EXPECT_TRUE(chunks_of_rank(chunks, rank, ranks).contains(ChunkId{c})) << ranks << " " << chunks;
      }
    }
  }
}

}  // namespace
}  // namespace rondo::test_replay_parts
