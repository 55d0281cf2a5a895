#include <gtest/gtest.h>

#include <atomic>

#include "stop_rule.hpp"
#include "topologies.hpp"

/// A broadcast of 3 MB from GPU 0 to two others over one link each. Both links together carry it in 1500 us,
/// and the last byte is 1 us on its way: no schedule ends before 1501 us.
namespace rondo::test_stop_rule {
namespace {

class StopRuleTest : public testing::Test {
 protected:
  StopRule rule() { return {problem, bounds, context}; }

  std::unique_ptr<Communicator> communicator = make_local_communicator();
  std::atomic<bool> interrupt = false;
  RunContext context{.communicator = *communicator, .interrupt = &interrupt};
  Problem problem{fabric({gpu(), gpu(), gpu()}, {link(0, 1), link(0, 2), link(1, 2), link(2, 1)}),
                  make_demand(Collective::broadcast, 3 * kMB, 3, 1)};
  Bounds bounds{{LowerBound{1501, CutCertificate{{NodeId{0}}, 3 * kMB}}}};
};

TEST_F(StopRuleTest, WithoutAGapABroadcastEndsNearTheBound) {
  StopRule rule = this->rule();
  EXPECT_DOUBLE_EQ(rule.enough_us(), 1501 * (1 + 5e-4));
  EXPECT_FALSE(rule.stop(1501.8));
  EXPECT_TRUE(rule.stop(1501.7));
}

TEST_F(StopRuleTest, WithoutAGapTheBoundAloneIsGoodEnough) {
  std::vector<Contribution> of_two_roots = problem.demand.contributions();
  of_two_roots.push_back({.origin = GpuId{1}, .bytes = kMB, .destinations = {GpuId{2}}});
  problem.demand = Demand(Collective::custom, 4 * kMB, 3, std::move(of_two_roots), 1);
  StopRule rule = this->rule();
  EXPECT_DOUBLE_EQ(rule.enough_us(), 1501 * (1 + 1e-6));
  EXPECT_FALSE(rule.stop(1501.1));
  EXPECT_TRUE(rule.stop(1501));
  EXPECT_TRUE(rule.limits_hit().empty());
}

TEST_F(StopRuleTest, AScheduleWithinTheGapIsGoodEnough) {
  problem.options.gap = 0.1;
  StopRule rule = this->rule();
  EXPECT_FALSE(rule.stop(1652));
  EXPECT_TRUE(rule.stop(1651));
  problem.options.gap = 0;
  EXPECT_FALSE(this->rule().stop(1501.001));
}

TEST_F(StopRuleTest, TheTimeLimitEndsTheSearch) {
  problem.options.time_limit_s = 3600;
  EXPECT_FALSE(rule().stop(2000));
  EXPECT_GE(rule().time_share(), 0);
  EXPECT_LT(rule().time_share(), 0.1);
  problem.options.time_limit_s = 1e-9;
  StopRule late = rule();
  EXPECT_TRUE(late.stop(2000));
  EXPECT_TRUE(late.stop(2000));
  EXPECT_GE(late.time_share(), 1);
  EXPECT_EQ(late.limits_hit(), std::vector<std::string>{"time"});
}

TEST_F(StopRuleTest, TheTimeForWritingAScheduleIsLeftOut) {
  problem.options.time_limit_s = 3600;
  StopRule rule = this->rule();
  while (context.clock.seconds() < 0.01) continue;
  const double before = rule.time_share();
  rule.expect(1e15);  // it would take all of the limit: a tenth is left
  EXPECT_GE(rule.time_share(), 10 * before);
}

TEST_F(StopRuleTest, WithoutATimeLimitNoShareOfItIsOver) {
  EXPECT_EQ(rule().time_share(), 0);
}

TEST_F(StopRuleTest, ASignalEndsTheSearch) {
  StopRule rule = this->rule();
  EXPECT_FALSE(rule.stop(2000));
  interrupt = true;
  EXPECT_TRUE(rule.stop(2000));
  EXPECT_EQ(rule.limits_hit(), std::vector<std::string>{"interrupted"});
}

TEST_F(StopRuleTest, WholeChunksEndLaterThanTheBound) {
  // One chunk needs all of a link; of three, one link carries two.
  EXPECT_DOUBLE_EQ(rule().least_us(1), 3001);
  EXPECT_DOUBLE_EQ(rule().least_us(2), 1501);
  EXPECT_DOUBLE_EQ(rule().least_us(3), 2001);
}

TEST_F(StopRuleTest, OfWholeChunksACutMaySayMoreThanTheBestBound) {
  // GPU 1 wants 3 MB over two ways of 1 and 2 us: 2 (T - 1) - 1 = 3000.
  bounds.all.insert(bounds.all.begin(), {1501.5, TimeCutCertificate{GpuId{1}, {0, 1501.5, 1}}});
  EXPECT_DOUBLE_EQ(rule().enough_us(), 1501.5 * (1 + 5e-4));
  EXPECT_DOUBLE_EQ(rule().least_us(1), 3001);
  EXPECT_DOUBLE_EQ(rule().least_us(2), 1501.5);
}

TEST_F(StopRuleTest, NoSearchForLessThanTheChunksAskedForAllow) {
  EXPECT_FALSE(rule().stop(2001));
  problem.options.chunks = 3;
  EXPECT_FALSE(rule().stop(2001.1));
  EXPECT_TRUE(rule().stop(2001));
}

}  // namespace
}  // namespace rondo::test_stop_rule
