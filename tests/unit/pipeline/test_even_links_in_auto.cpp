#include <gtest/gtest.h>

#include <algorithm>

#include "by_hand.hpp"
#include "even_links.hpp"
#include "rondo/core/verify.hpp"

namespace rondo::test_even_links_in_auto {
namespace {

constexpr double kBytes = 1e6;
constexpr const char* kRemark = "found on links slowed down to rates that fill wider ones";

/// Two GPUs with links of `link_GBps` to their leaves, which two spines join at 25 GB/s.
Problem over_two_spines(double link_GBps, Collective collective = Collective::allgather) {
  Fabric fabric(2);
  const int leaves[] = {fabric.cut_through(), fabric.cut_through()};
  for (int i = 0; i < 2; ++i) {
    fabric.link(i, leaves[i], link_GBps, 0.5);
    fabric.link(leaves[i], i, link_GBps, 0.5);
    const int spine = fabric.cut_through();
    for (const int leaf : leaves) {
      fabric.link(leaf, spine, 25, 0.5);
      fabric.link(spine, leaf, 25, 0.5);
    }
  }
  return {std::make_shared<const Topology>(fabric.build()), make_demand(collective, kBytes, 2, 1)};
}

bool is_on_even_links(const SynthesisResult& result) {
  return std::ranges::find(result.remarks, kRemark) != result.remarks.end();
}

TEST(EvenLinksInAuto, TwoTransfersAtHalfTheRateFillALink) {
  // Half a megabyte each way, at 48 GB/s; ReduceScatter and AllToAll have the same to carry.
  for (const Collective collective :
       {Collective::allgather, Collective::reduce_scatter, Collective::alltoall}) {
    const Problem problem = over_two_spines(48, collective);
    const SynthesisResult result = synthesize(problem, {*make_local_communicator()});
    verify(result.proven);
    EXPECT_EQ(result.proven.topology.link(LinkId{2}).bandwidth_GBps, 25);
    EXPECT_LT(result.proven.schedule.finish_us, (5e5 / 48e3 + 2) * 1.01) << to_string(collective);
    EXPECT_TRUE(is_on_even_links(result)) << to_string(collective);
    for (const Send& s : result.proven.schedule.sends) EXPECT_DOUBLE_EQ(s.rate_GBps, 24);
  }
}

TEST(EvenLinksInAuto, HalvesOfAllReduceHaveThem) {
  const SynthesisResult result =
      synthesize(over_two_spines(48, Collective::allreduce), {*make_local_communicator()});
  verify(result.proven);
  // Each half of the buffer goes both ways one after another, beside the other half.
  EXPECT_LT(result.proven.schedule.finish_us, (2 * 5e5 / 48e3 + 2) * 1.01);
}

TEST(EvenLinksInAuto, OnlyWhereEnginesMayChooseAndSomeLinkIsUneven) {
  EXPECT_TRUE(on_even_links(over_two_spines(48)));
  EXPECT_FALSE(on_even_links(over_two_spines(50)));
  Problem by_list = over_two_spines(48);
  by_list.options.engine = "list";
  EXPECT_FALSE(on_even_links(by_list));
}

// On even links all of it takes 25 / 24.99 as long, which is near enough unless less is asked for; 25 / 24.9
// is not.
TEST(EvenLinksInAuto, AGapThatIsAskedForIsHeeded) {
  const auto finish_us = [](double wider_GBps, std::optional<double> gap) {
    Fabric fabric(2);
    const int sw = fabric.cut_through();
    fabric.link(0, sw, 25);
    fabric.link(sw, 1, wider_GBps);
    fabric.link(1, 0, 25);
    const Topology topology = fabric.build();
    Problem problem{std::make_shared<const Topology>(topology), custom(topology, {part(0, 25 * kUs, {1})})};
    problem.options.gap = gap;
    return synthesize(problem, {*make_local_communicator()}).proven.schedule.finish_us;
  };
  EXPECT_NEAR(finish_us(49.98, std::nullopt), 25 / 24.99, 1e-9);
  EXPECT_DOUBLE_EQ(finish_us(49.98, 1e-4), 1);
  EXPECT_NEAR(finish_us(49.8, 5e-3), 25 / 24.9, 1e-9);
  EXPECT_DOUBLE_EQ(finish_us(49.8, std::nullopt), 1);
}

TEST(EvenLinksInAuto, LinksAsTheyAreWhereTheSlowOnesDecide) {
  // One part, all of it over the link of 25 GB/s between two GPUs.
  Fabric fabric(2);
  const int sw = fabric.cut_through();
  fabric.link(0, sw, 25);
  fabric.link(sw, 1, 48);
  fabric.link(1, 0, 25);
  const Topology topology = fabric.build();
  const Problem problem{std::make_shared<const Topology>(topology),
                        custom(topology, {part(0, 25 * kUs, {1})})};
  ASSERT_TRUE(on_even_links(problem));
  const SynthesisResult result = synthesize(problem, {*make_local_communicator()});
  EXPECT_FALSE(is_on_even_links(result));
  EXPECT_DOUBLE_EQ(result.proven.schedule.finish_us, 1);
}

}  // namespace
}  // namespace rondo::test_even_links_in_auto
