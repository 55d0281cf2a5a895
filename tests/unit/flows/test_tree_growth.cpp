// By hand: two GPUs behind a switch, two periods.

#include <gtest/gtest.h>

#include <limits>

#include "topologies.hpp"
#include "tree_growth.hpp"

namespace rondo::test_tree_growth {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

class TreeGrowthTest : public testing::Test {
 protected:
  static constexpr LinkId kUp{0}, kDown{3};

  /// Costs of the way up and down in the first period, then in the second.
  std::optional<std::vector<SteinerHop>> grow(double up, double down, double later_up, double later_down) {
    const std::vector<double> cost{up, 1, 1, down, later_up, 1, 1, later_down};
    return TreeGrowth(fabric_, graph_)
        .grow({.origin = GpuId{0}, .destinations = {GpuId{1}}, .bytes = 1}, 0, cost);
  }

  const Topology fabric_ = *star(2);
  const PeriodGraph graph_{fabric_, 2};
};

TEST_F(TreeGrowthTest, WaitsAtGpus) {
  const auto hops = grow(5, 5, 1, 1);
  ASSERT_TRUE(hops);
  EXPECT_EQ(*hops, (std::vector<SteinerHop>{{{kUp, kDown}, 1}}));
}

// A hop is one transfer: its load would be counted in the wrong period.
TEST_F(TreeGrowthTest, DoesNotWaitInSwitches) {
  const auto hops = grow(0, 9, 5, 1);
  ASSERT_TRUE(hops);
  EXPECT_EQ(*hops, (std::vector<SteinerHop>{{{kUp, kDown}, 1}}));
}

TEST_F(TreeGrowthTest, SaysWhenADestinationIsOutOfReach) {
  EXPECT_FALSE(grow(0, kNever, kNever, 0));
  EXPECT_TRUE(grow(0, kNever, 0, 0));
}

}  // namespace
}  // namespace rondo::test_tree_growth
