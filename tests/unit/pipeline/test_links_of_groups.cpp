#include <gtest/gtest.h>

#include "by_hand.hpp"
#include "rondo/core/verify.hpp"
#include "rondo/pipeline/synthesize.hpp"

/// Fabrics that few others are like, on which every collective still has to end with a schedule.
namespace rondo::test_links_of_groups {
namespace {

SynthesisResult solve(const Topology& topology, Collective collective, double bytes) {
  SolveOptions options;
  options.improve_work = 1e4;
  SynthesisResult result = synthesize({std::make_shared<const Topology>(topology),
                                       make_demand(collective, bytes, topology.num_gpus(), 1), options},
                                      {*make_local_communicator()});
  verify(result.proven);
  for (const std::string& remark : result.remarks)
    EXPECT_EQ(remark.find("a fault of Rondo"), std::string::npos) << remark;
  return result;
}

/// Four GPUs on a switch at 10 GB/s, two and two behind one bus of 2.5 GB/s in each direction.
Topology narrow_buses() {
  Fabric fabric(4);
  const int sw = fabric.cut_through();
  for (int g = 0; g < 4; ++g) {
    fabric.link(g, sw, 10, 0.5);
    fabric.link(sw, g, 10, 0.5);
  }
  for (int up = 0; up < 2; ++up) {
    fabric.share({up, 2 + up}, 2.5);
    fabric.share({4 + up, 6 + up}, 2.5);
  }
  return fabric.build();
}

TEST(LinksOfGroups, AreUsedThoughTheyAreFasterThanWhatTheyShare) {
  const Topology topology = narrow_buses();
  // What the fullest bus has to carry at 2.5 GB/s, and two latencies: for two GPUs three parts of 250 KB
  // each, or of the buffer's copies one each; from the root or to it three parts.
  const std::vector<std::pair<Collective, double>> least_us{
      {Collective::allgather, 601},  {Collective::alltoall, 601},  {Collective::reduce_scatter, 601},
      {Collective::allreduce, 1202}, {Collective::broadcast, 801}, {Collective::reduce, 801},
      {Collective::scatter, 301},    {Collective::gather, 301}};
  for (const auto& [collective, us] : least_us) {
    const SynthesisResult result = solve(topology, collective, 1e6);
    EXPECT_EQ(result.proven.topology.link(LinkId{0}).bandwidth_GBps, 10);
    EXPECT_LT(result.proven.schedule.finish_us, us * 1.02) << to_string(collective);
  }
}

TEST(StoreAndForward, PartsOfASumThatMeetInASwitchAreToldApart) {
  Fabric fabric(3);
  const int sw = fabric.store_and_forward(1e6, false);
  for (int g = 0; g < 3; ++g) {
    fabric.link(g, sw, 25, 0.7);
    fabric.link(sw, g, 25, 0.7);
  }
  const Topology topology = fabric.build();
  for (const Collective collective : {Collective::reduce_scatter, Collective::reduce, Collective::alltoall})
    solve(topology, collective, 1e3);
  // Every GPU's data goes straight to both others: two messages in turn, over two links of 0.7 us.
  EXPECT_LT(solve(topology, Collective::allreduce, 1e3).proven.schedule.finish_us, 1.7);
}

}  // namespace
}  // namespace rondo::test_links_of_groups
