#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "by_hand.hpp"
#include "forest.hpp"
#include "rondo/local_search/replanting_sums.hpp"
#include "rondo/parallel/communicator.hpp"
#include "sum_forest.hpp"
#include "sum_trees.hpp"
#include "topologies.hpp"

/// Sums for all GPUs whose trees are taken out and grown anew.
namespace rondo::test_replanting_sums {
namespace {

/// Two GPUs, a link of 1 GB/s and 1 us each way.
std::shared_ptr<const Topology> pair_of_gpus() {
  return fabric({gpu(), gpu()}, {link(0, 1), link(1, 0)});
}

Send sent(int chunk, int link, double start_us, SendOp op) {
  return {ChunkId{chunk}, LinkId{link}, start_us, start_us + 1, start_us + 2, op};
}

/// Two chunks of 1e3 bytes, both added up at GPU 0: [0, 2) and [1, 3), and back at once.
Schedule both_at_gpu_0() {
  return {{sent(0, 1, 0, SendOp::reduce), sent(1, 1, 1, SendOp::reduce), sent(0, 0, 2, SendOp::copy),
           sent(1, 0, 3, SendOp::copy)},
          5};
}

/// Three GPUs and a switch, 1 GB/s and 0.5 us a link: parts of 4e3 bytes enter the link to GPU 0 one after
/// another, [4.5, 8.5) before the parts meet at 9, and [0.5, 4.5).
TEST(Forest, ReadBackwardsLeadsToItsRoot) {
  const auto topology = fabric({gpu(), gpu(), gpu(), {.kind = NodeKind::switch_, .name = "sw"}},
                               {link(0, 3, 1, 0.5), link(3, 0, 1, 0.5), link(1, 3, 1, 0.5),
                                link(3, 1, 1, 0.5), link(2, 3, 1, 0.5), link(3, 2, 1, 0.5)});
  const PlanSpace space = make_plan_space(*topology, make_demand(Collective::broadcast, 4e3, 3, 1));
  Forest forest(space, Forest::Reading::backwards);
  forest.set_prices(std::vector<double>(topology->num_links(), 1));
  forest.grow(0, {GpuId{0}, 1}, 100);  // all links cost as much: straight to the root
  ASSERT_EQ(forest.tree(0).size(), 2U);
  EXPECT_DOUBLE_EQ(forest.tree(0)[0].start_us, 1);
  EXPECT_DOUBLE_EQ(forest.tree(0)[0].arrival_us, 6);
  EXPECT_DOUBLE_EQ(forest.tree(0)[1].start_us, 5);
  EXPECT_DOUBLE_EQ(forest.ends_us(0), 10);  // read forwards, it begins at 0 where 10 is the horizon
  EXPECT_DOUBLE_EQ(forest.load_us()[1], 8);
}

TEST(Forest, LeavesTheTimeOfTheOtherReadingAlone) {
  const auto topology = pair_of_gpus();
  const PlanSpace space = make_plan_space(*topology, make_demand(Collective::broadcast, 1e3, 2, 1));
  Forest backwards(space, Forest::Reading::backwards);
  Forest forwards(space, Forest::Reading::forwards);
  backwards.share_links_with(forwards, 10);
  // From GPU 0 to GPU 1, where parts meet at 5: on the link during [3, 4), arrival at 5.
  backwards.grow(0, {GpuId{1}, 5}, 0);
  EXPECT_DOUBLE_EQ(backwards.ends_us(0), 7);
  forwards.grow(0, {GpuId{0}, 2.5}, 0);
  EXPECT_DOUBLE_EQ(forwards.ends_us(0), 6);  // at 2.5 there is half a us
  backwards.take_out(0);
  forwards.take_out(0);
  forwards.grow(0, {GpuId{0}, 2.5}, 0);
  EXPECT_DOUBLE_EQ(forwards.ends_us(0), 4.5);
}

TEST(SumTrees, AreThoseOfASchedule) {
  const auto topology = pair_of_gpus();
  const Demand demand = make_demand(Collective::allreduce, 2e3, 2, 2);
  const Schedule schedule = both_at_gpu_0();
  ASSERT_DOUBLE_EQ(finish_of(*topology, demand, schedule), 5);
  const std::optional<SumPlan> plan = sum_plan_of(schedule, *topology, demand, kAnyConcurrency);
  ASSERT_TRUE(plan.has_value());
  const SumTrees::Tree& second = plan->trees.of_chunk[1];
  EXPECT_EQ(second.root.gpu, GpuId{0});
  EXPECT_DOUBLE_EQ(second.root.ready_us, 3);
  EXPECT_DOUBLE_EQ(second.begins_us, 1);
  EXPECT_DOUBLE_EQ(second.ends_us, 5);
  EXPECT_DOUBLE_EQ(second.sums.front().arrival_us, plan->space.horizon_us - 1);
  const Schedule again = schedule_of(plan->trees, plan->space);
  EXPECT_EQ(again.sends.size(), 4U);
  EXPECT_DOUBLE_EQ(finish_of(*topology, demand, again), 5);
}

/// Each GPU adds the other's part to its own: the sum is at both, and spreads from nowhere.
TEST(SumTrees, AreNotThereWhereGpusExchange) {
  const auto topology = pair_of_gpus();
  const Demand demand = make_demand(Collective::allreduce, 1e3, 2, 1);
  const Schedule exchange{{sent(0, 0, 0, SendOp::reduce), sent(0, 1, 0, SendOp::reduce)}, 2};
  ASSERT_DOUBLE_EQ(finish_of(*topology, demand, exchange), 2);
  EXPECT_FALSE(sum_plan_of(exchange, *topology, demand, kAnyConcurrency).has_value());
}

/// Everything a us later than it could be, and the second chunk another one.
TEST(SumTrees, AreJustified) {
  const auto topology = pair_of_gpus();
  const Demand demand = make_demand(Collective::allreduce, 2e3, 2, 2);
  const Schedule late{{sent(0, 1, 1, SendOp::reduce), sent(0, 0, 3, SendOp::copy),
                       sent(1, 1, 3, SendOp::reduce), sent(1, 0, 6, SendOp::copy)},
                      8};
  ASSERT_DOUBLE_EQ(finish_of(*topology, demand, late), 8);
  const std::optional<SumPlan> plan = sum_plan_of(late, *topology, demand, kAnyConcurrency);
  ASSERT_TRUE(plan.has_value());
  const SumTrees early = justified(plan->trees, plan->space);
  EXPECT_DOUBLE_EQ(early.finish_us(), 5);
  EXPECT_DOUBLE_EQ(early.of_chunk[0].begins_us, 0);
  EXPECT_DOUBLE_EQ(finish_of(*topology, demand, schedule_of(early, plan->space)), 5);
}

TEST(SumForest, TakesOutAndPutsBack) {
  const auto topology = pair_of_gpus();
  const Demand demand = make_demand(Collective::allreduce, 2e3, 2, 2);
  const auto plan = sum_plan_of(both_at_gpu_0(), *topology, demand, kAnyConcurrency);
  ASSERT_TRUE(plan.has_value());
  SumForest forest(plan->trees, plan->space);
  EXPECT_DOUBLE_EQ(forest.latest_us(), 5);
  EXPECT_DOUBLE_EQ(forest.late_us(1, 4), 1);
  EXPECT_EQ(forest.load_us(), (std::vector<double>{2, 2}));
  SumForest::Tree before = forest.take_out(1);
  EXPECT_EQ(forest.load_us(), (std::vector<double>{1, 1}));
  forest.put_back(1, before);
  before = forest.take_out(1);
  // To meet at GPU 1 at 1, the other part sets out a us before it is there.
  SumForest::Tree moved = before;
  moved.root = {GpuId{1}, 1};
  moved.sums.clear();
  moved.spread.clear();
  forest.put_back(1, moved);
  forest.grow(1, 0);
  EXPECT_DOUBLE_EQ(forest.late_us(1, 4), 1);
  EXPECT_DOUBLE_EQ(forest.ends_us(1), 3);
}

/// One chunk meets at each GPU: both links carry a part and a sum, 2 us each with latency.
TEST(SumReplanting, LetsPartsMeetElsewhere) {
  const auto topology = pair_of_gpus();
  const Demand demand = make_demand(Collective::allreduce, 2e3, 2, 2);
  const Schedule schedule = both_at_gpu_0();
  SumReplantingTask task{.topology = *topology, .demand = demand, .schedule = schedule};
  task.bound_us = 4;
  task.work_limit = 1e4;
  task.stop = [](double finish_us) { return finish_us <= 4; };
  ASSERT_TRUE(may_replant_sums(*topology, demand));
  const auto alone = make_local_communicator();
  const std::optional<Schedule> better = replanted_sums(task, *alone);
  ASSERT_TRUE(better.has_value());
  EXPECT_DOUBLE_EQ(finish_of(*topology, demand, *better), 4);
  task.work_limit = 0;
  EXPECT_FALSE(replanted_sums(task, *alone).has_value());
}

TEST(SumReplanting, IsForSumsOfAllGpus) {
  const auto topology = pair_of_gpus();
  EXPECT_FALSE(may_replant_sums(*topology, make_demand(Collective::reduce_scatter, 2e3, 2, 1)));
  const auto costly = fabric({gpu(), gpu()}, {link(0, 1), {NodeId{1}, NodeId{0}, 1, 1, 0.5}});
  EXPECT_FALSE(may_replant_sums(*costly, make_demand(Collective::allreduce, 2e3, 2, 1)));
}

}  // namespace
}  // namespace rondo::test_replanting_sums
