// By hand on a triangle: from node 0 to node 1 straight on, or over node 2 at twice the rate.

#include <gtest/gtest.h>

#include "block_pool.hpp"
#include "rondo/parallel/communicator.hpp"

namespace rondo::test_block_pool {
namespace {

/// Arcs 0: 0 -> 1, 1: 0 -> 2, 2: 2 -> 1, each with a row of its own; one block of 6.
ConcurrentFlow triangle() {
  return {{3, {{0, 1}, {0, 2}, {2, 1}}}, {{{0}, 1}, {{1}, 2}, {{2}, 2}}, {{0, {{1, 6}}}}};
}

const std::vector<ArcLoad> kStraight{{0, 6}};
const std::vector<ArcLoad> kAround{{1, 6}, {2, 6}};

class BlockPoolTest : public testing::Test {
 protected:
  const ConcurrentFlow flow_ = triangle();
  const std::unique_ptr<Communicator> alone_ = make_local_communicator();
  BlockPool pool_{flow_, *alone_};
};

TEST_F(BlockPoolTest, PricesTheCheapestTree) {
  const std::vector<PricedBlock> around = pool_.price({1, 0.25, 0.25});
  ASSERT_EQ(around.size(), 1U);
  EXPECT_EQ(around[0].block, 0);
  EXPECT_EQ(around[0].loads, kAround);
  EXPECT_DOUBLE_EQ(around[0].cost, 3);  // 6 x (0.25 + 0.25)
  ASSERT_EQ(around[0].rows.size(), 2U);
  EXPECT_DOUBLE_EQ(around[0].rows[0].theta, 3);  // 6 over a capacity of 2
  const std::vector<PricedBlock> straight = pool_.price({0.25, 1, 1});
  EXPECT_EQ(straight[0].loads, kStraight);
  EXPECT_DOUBLE_EQ(straight[0].cost, 1.5);
}

TEST_F(BlockPoolTest, GivesTheMasterItsColumnsInItsUnit) {
  pool_.add({{0, 0, kStraight}});
  pool_.add({{0, 0, {}}, {0, 0, kAround}});  // what has no loads is left out
  ASSERT_EQ(pool_.size(), 2U);
  const std::vector<MasterColumn> columns = pool_.for_master(1, 2);
  ASSERT_EQ(columns.size(), 1U);
  EXPECT_EQ(columns[0].block, 0);
  EXPECT_EQ(columns[0].rows, (std::vector{1, 2}));
  EXPECT_EQ(columns[0].loads, (std::vector{1.5, 1.5}));
  EXPECT_EQ(pool_.for_master(0, 1).front().loads, std::vector{6.0});
}

TEST_F(BlockPoolTest, TheFlowIsTheWeightedSum) {
  pool_.add({{0, 0, kStraight}});
  pool_.add({{0, 0, kAround}});
  pool_.take_weights({1.0 / 3, 2.0 / 3});  // 2 straight on, 4 around: theta 2 on every arc
  EXPECT_EQ(pool_.flow(), (std::vector<std::vector<ArcLoad>>{{{0, 2}, {1, 4}, {2, 4}}}));
}

TEST_F(BlockPoolTest, PruningKeepsWhatWasUsedLast) {
  for (int i = 0; i < 5; ++i) pool_.add({{0, 0, {{0, 1.0 + i}}}});
  EXPECT_TRUE(pool_.prune(3).empty());  // five are not more than twice three
  pool_.take_weights({0, 0, 0, 1, 0});
  pool_.take_weights({0, 1, 0, 0, 0});
  EXPECT_EQ(pool_.prune(2), (std::vector<char>{0, 1, 0, 1, 0}));
  ASSERT_EQ(pool_.size(), 2U);
  EXPECT_EQ(pool_.for_master(0, 1).back().loads, std::vector{4.0});
  EXPECT_EQ(pool_.flow(), (std::vector<std::vector<ArcLoad>>{{{0, 2}}}));
}

TEST_F(BlockPoolTest, PruningKeepsAllThatAreUsed) {
  for (int i = 0; i < 5; ++i) pool_.add({{0, 0, {{0, 1.0 + i}}}});
  pool_.take_weights({0.5, 0, 0, 0.25, 0.25});
  EXPECT_EQ(pool_.prune(1), (std::vector<char>{1, 0, 0, 1, 1}));
}

TEST(BlockFlows, AverageTheColumns) {
  const ConcurrentFlow flow = triangle();
  BlockFlows average(flow);
  const RowLoads rows(flow);
  average.add({{0, 0, kStraight, rows.of(kStraight)}}, 1);
  EXPECT_EQ(average.row_loads(), (std::vector<double>{6, 0, 0}));
  average.add({{0, 0, kAround, rows.of(kAround)}}, 0.5);
  EXPECT_EQ(average.row_loads(), (std::vector<double>{3, 1.5, 1.5}));
  const std::vector<PricedBlock> columns = average.columns();
  ASSERT_EQ(columns.size(), 1U);
  EXPECT_EQ(columns[0].loads, (std::vector<ArcLoad>{{0, 3}, {1, 3}, {2, 3}}));
}

}  // namespace
}  // namespace rondo::test_block_pool
