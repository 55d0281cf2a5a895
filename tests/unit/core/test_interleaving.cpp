#include <gtest/gtest.h>

#include "by_hand.hpp"
#include "rondo/core/interleaving.hpp"
#include "sum_schedules.hpp"

namespace rondo::test_interleaving {
namespace {

// 0 -> 1 -> 2: chunk 0 ends at 1, chunk 1 goes on to 2. In the order given chunk 1 comes to 2 at 3 us;
// backwards what goes on has the longer way to the end, so that it goes first and all ends at 2 us.
TEST(ThereAndBack, PutsFirstWhatHasTheLongerWay) {
  Fabric fabric(3);
  fabric.link(0, 1);
  fabric.link(1, 2);
  const Topology topology = fabric.build();
  const Demand demand = custom(topology, {part(0, kUs, {1}), part(0, kUs, {2})});
  const std::vector<Send> sends = {send(0, 0, 0, 1), send(1, 0, 1, 2), send(1, 1, 2, 3)};
  const std::vector<double> keys = {0, 1, 2};
  const TimedSends before{topology, sends};
  EXPECT_DOUBLE_EQ(finish_of(topology, demand, interleaved(before, topology, demand, keys)), 3);
  EXPECT_DOUBLE_EQ(finish_of(topology, demand, interleaved_there_and_back(before, topology, demand, keys, 1)),
                   2);
}

// The same where chunk 1 is a sum that GPU 1 adds to: what leaves 1 waits for what comes there.
TEST(ThereAndBack, KeepsSumsWhole) {
  Fabric fabric(3);
  fabric.link(0, 1);
  fabric.link(1, 2);
  const Topology topology = fabric.build();
  Contribution sum{.origin = GpuId{0}, .bytes = kUs, .destinations = {GpuId{2}}};
  sum.sources = {GpuId{0}, GpuId{1}, GpuId{2}};
  sum.reduce = true;
  const Demand demand = custom(topology, {part(0, kUs, {1}), sum});
  std::vector<Send> sends = {send(0, 0, 0, 1), send(1, 0, 1, 2), send(1, 1, 2, 3)};
  sends[1].op = sends[2].op = SendOp::reduce;
  const std::vector<double> keys = {0, 1, 2};
  EXPECT_DOUBLE_EQ(
      finish_of(topology, demand, interleaved_there_and_back({topology, sends}, topology, demand, keys, 2)),
      2);
}

TEST(ThereAndBack, AcceptsATextbookRing) {
  const auto ring = one_way_ring(4);
  const Demand demand = make_demand(Collective::allreduce, 4000, 4, 4);
  const ProvenSchedule textbook = in_rounds(*ring, demand, ring_sums(4, 1, true));
  const std::vector<Send>& sends = textbook.schedule.sends;
  std::vector<double> keys;
  for (const Send& send : sends) keys.push_back(send.start_us);
  EXPECT_LE(finish_of(*ring, demand, interleaved_there_and_back({*ring, sends}, *ring, demand, keys, 3)),
            textbook.schedule.finish_us);
}

}  // namespace
}  // namespace rondo::test_interleaving
