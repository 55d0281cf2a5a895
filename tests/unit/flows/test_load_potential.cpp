// By hand on a triangle, 1 us a MB on every link.

#include <gtest/gtest.h>

#include "load_potential.hpp"
#include "topologies.hpp"

namespace rondo::test_load_potential {
namespace {

class LoadPotentialTest : public testing::Test {
 protected:
  LoadPotentialTest() {
    potential_.set_exponent(2);
    potential_.set_scale(4);
  }

  const std::shared_ptr<const Topology> topology_ =
      fabric({gpu(), gpu(), gpu()}, {link(0, 1, 1000), link(0, 2, 1000), link(2, 1, 1000)});
  const HopTable hops_{*topology_};
  LoadPotential potential_{*topology_, hops_.hops()};
};

TEST_F(LoadPotentialTest, GrowsByTheSquareOfTheLoad) {
  const UseId use = potential_.uses_of_hop(0).front();
  EXPECT_DOUBLE_EQ(potential_.growth(use, kMB), 1.0 / 16);
  potential_.add(potential_.uses_of_hop(0), kMB, 3);
  EXPECT_DOUBLE_EQ(potential_.greatest_load_us(), 3);
  EXPECT_DOUBLE_EQ(potential_.growth(use, kMB), (16.0 - 9.0) / 16);
  EXPECT_DOUBLE_EQ(potential_.slope(use, kMB), 0.75);
  EXPECT_DOUBLE_EQ(potential_.growth(potential_.uses_of_hop(1).front(), kMB), 1.0 / 16);
}

TEST_F(LoadPotentialTest, NoGrowthIsKeptThatNoLongerHolds) {
  const UseId use = potential_.uses_of_hop(0).front();
  EXPECT_DOUBLE_EQ(potential_.growth(use, kMB), 1.0 / 16);
  EXPECT_DOUBLE_EQ(potential_.growth(use, 2 * kMB), 4.0 / 16);
  potential_.set_scale(2);
  EXPECT_DOUBLE_EQ(potential_.growth(use, 2 * kMB), 1);
  potential_.set_exponent(1);
  EXPECT_DOUBLE_EQ(potential_.growth(use, kMB), 0.5);
}

}  // namespace
}  // namespace rondo::test_load_potential
