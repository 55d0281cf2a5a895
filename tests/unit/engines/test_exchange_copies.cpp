#include <gtest/gtest.h>

#include "rondo/core/generators.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/engines/exchange.hpp"
#include "topologies.hpp"

namespace rondo::test_exchange_copies {
namespace {

/// GPUs under leaves and one spine, 0.5 us and 1 GB/s a link, whose switches copy.
std::shared_ptr<const Topology> fat_tree(int leaves, int gpus) {
  return generated("fat_tree", {{"leaves", std::to_string(leaves)},
                                {"gpus", std::to_string(gpus)},
                                {"spines", "1"},
                                {"link_GBps", "1"},
                                {"uplink_GBps", "1"}});
}

std::vector<GpuId> all_of(const Topology& topology) {
  std::vector<GpuId> all;
  for (std::size_t g = 0; g < topology.num_gpus(); ++g) all.emplace_back(g);
  return all;
}

struct Asked {
  explicit Asked(std::shared_ptr<const Topology> fabric, double bytes, int chunks = 1)
      : topology(std::move(fabric)),
        hops(*topology),
        demand(make_demand(Collective::allreduce, bytes, topology->num_gpus(), chunks)) {}
  ExchangeProblem problem() const { return {*topology, hops, {all_of(*topology)}, 1, demand}; }

  std::shared_ptr<const Topology> topology;
  HopTable hops;
  Demand demand;
};

void expect_valid(const Asked& asked, const std::optional<Schedule>& schedule, double finish_us) {
  ASSERT_TRUE(schedule);
  const ReplayResult replayed = replay(*asked.topology, asked.demand, schedule->sends);
  EXPECT_TRUE(replayed.valid()) << replayed.violation.value_or("");
  EXPECT_NEAR(replayed.finish_us, finish_us, 1e-3);
  EXPECT_NEAR(schedule->finish_us, replayed.finish_us, 1e-9);
}

// 100 bytes take 0.1 us. In the leaf four GPUs send to the others one after another, 1 + 4 x 0.1 us; from the
// other leaf comes one message, 2 + 0.1 us. Without copies there are three in the leaf, and then all four
// GPUs' pass the one link between the leaves.
TEST(ExchangeByCopies, PassesTheLinksBetweenLeavesOnce) {
  const Asked asked(fat_tree(2, 4), 100);
  ASSERT_TRUE(can_exchange_by_copies(asked.problem()));
  expect_valid(asked, exchange_by_copies(asked.problem(), {4, 2}), 1.4 + 2.1);
  expect_valid(asked, exchange(asked.problem(), {4, 2}), 1.3 + 2.4);
  const auto best = best_levels(asked.problem(), ordered_factorisations(8));
  ASSERT_TRUE(best);
  EXPECT_TRUE(best->by_copies);
  // All at once: seven messages in a row, the first of which has come 1 us after its start.
  EXPECT_EQ(best->radices, std::vector<int>{8});
  EXPECT_NEAR(best->finish_us, 2.4, 0.35);
}

// Behind one switch: eight messages of 0.4 us take more than the 1 us after which GPUs hear from each other;
// chunk by chunk they do not.
TEST(ExchangeByCopies, SendsNothingThatHasBeenAddedToAlready) {
  EXPECT_FALSE(exchange_by_copies(Asked(fat_tree(1, 8), 400).problem(), {8}));
  const Asked in_parts(fat_tree(1, 8), 400, 8);
  expect_valid(in_parts, exchange_by_copies(in_parts.problem(), {8}), 1 + 8 * 0.4);
}

TEST(ExchangeByCopies, IsNotTriedWhereSwitchesDoNotCopyOrAreNone) {
  const Asked full(generated("full", {{"gpus", "4"}}), 100);
  EXPECT_FALSE(can_exchange_by_copies(full.problem()));
  EXPECT_FALSE(exchange_by_copies(full.problem(), {4}));
  TopologyData data = fat_tree(2, 2)->data();
  for (Node& node : data.nodes) node.multicast = node.kind == NodeKind::gpu && node.multicast;
  const Asked plain(std::make_shared<const Topology>(data), 100);
  EXPECT_FALSE(can_exchange_by_copies(plain.problem()));
  data = fat_tree(2, 2)->data();
  for (Node& node : data.nodes) {
    if (node.kind == NodeKind::switch_) node.forwarding = Forwarding::store_and_forward;
  }
  EXPECT_FALSE(can_exchange_by_copies(Asked(std::make_shared<const Topology>(data), 100).problem()));
}

// GPUs 1 and 3 gather the sums of the first half of the buffer in their leaves, 0 and 2 of the second; then
// all hear both sums of both halves.
TEST(TellByCopies, TheOwnGroupsSumComesFirst) {
  const auto topology = fat_tree(2, 2);
  const std::vector<std::vector<GpuId>> groups{{GpuId{0}, GpuId{1}}, {GpuId{2}, GpuId{3}}};
  Asked asked(topology, 200, 2);
  ExchangeProblem problem = asked.problem();
  problem.members = {{GpuId{1}, GpuId{3}}, {GpuId{0}, GpuId{2}}};
  const auto told = tell_by_copies(problem, groups);
  ASSERT_TRUE(told);
  EXPECT_NEAR(told->finish_us, 2 + 2 * 0.1, 0.11);
  std::vector<Send> sends;
  for (const auto& [from, to, chunk] : {std::tuple{0, 1, 0}, {2, 3, 0}, {1, 0, 1}, {3, 2, 1}}) {
    for (const Hop& hop : hops_from(*topology, GpuId{from}, 1)) {
      if (hop.dst != GpuId{to}) continue;
      const std::size_t before = sends.size();
      append_sends(*topology, hop, ChunkId{chunk}, 100, 0, sends);
      sends.back().op = SendOp::reduce;
      for (std::size_t i = before; i < sends.size(); ++i) sends[i].transfer = static_cast<int>(before);
    }
  }
  for (Send send : told->sends) {
    send.start_us += 1.2;
    send.end_us += 1.2;
    send.arrival_us += 1.2;
    send.transfer += 100;
    sends.push_back(send);
  }
  Schedule all{sends};
  canonicalise(all);
  const ReplayResult replayed = replay(*topology, asked.demand, all.sends);
  EXPECT_TRUE(replayed.valid()) << replayed.violation.value_or("");
  EXPECT_NEAR(replayed.finish_us, told->finish_us + 1.2, 1e-6);
}

}  // namespace
}  // namespace rondo::test_exchange_copies
