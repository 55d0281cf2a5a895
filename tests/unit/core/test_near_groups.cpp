#include <gtest/gtest.h>

#include "rondo/core/near_groups.hpp"
#include "topologies.hpp"

namespace rondo::test_near_groups {
namespace {

std::vector<GpuId> gpus(const std::vector<int>& numbers) {
  std::vector<GpuId> all;
  for (const int n : numbers) all.emplace_back(n);
  return all;
}

// Pairs 0 2 and 1 3 are 1 us apart, 0 1 and 2 3 are 2.
TEST(OrderedByNearness, PutsNearOnesTogether) {
  TopologyData data;
  data.name = "square";
  data.nodes = std::vector<Node>(4);
  const auto join = [&](int a, int b, double us) {
    data.links.push_back({NodeId{a}, NodeId{b}, 1, us});
    data.links.push_back({NodeId{b}, NodeId{a}, 1, us});
  };
  join(0, 2, 1);
  join(1, 3, 1);
  join(0, 1, 2);
  join(2, 3, 2);
  const HopTable hops{Topology(data)};
  EXPECT_EQ(ordered_by_nearness(hops, gpus({0, 1, 2, 3}), {2, 2}, 1), gpus({0, 2, 1, 3}));
  // No GPU has hops to three others.
  EXPECT_FALSE(ordered_by_nearness(hops, gpus({0, 1, 2, 3}), {4}, 1));
  EXPECT_EQ(ordered_by_nearness(hops, gpus({0, 1}), {2}, 1), gpus({0, 1}));
}

// Of a line of four the middle could take either side; then the ends would be left alone.
TEST(OrderedByNearness, LeavesNobodyAlone) {
  const auto line = generated("mesh", {{"dims", "4"}});
  EXPECT_EQ(ordered_by_nearness(HopTable(*line), gpus({0, 1, 2, 3}), {2, 2}, 1), gpus({0, 1, 2, 3}));
  EXPECT_FALSE(ordered_by_nearness(HopTable(*line), gpus({0, 1, 3}), {3}, 1));
}

}  // namespace
}  // namespace rondo::test_near_groups
