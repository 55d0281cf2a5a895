#include <algorithm>
#include <cmath>

#include "certificates.hpp"
#include "rondo/core/transposition.hpp"

namespace rondo::test_time_cut {
namespace {

TimeCutCertificate time_cut(int gpu, std::vector<double> alpha_us) {
  return {GpuId{gpu}, std::move(alpha_us)};
}
TimeCutCertificate of_source(int gpu, std::vector<double> alpha_us) {
  return {GpuId{gpu}, std::move(alpha_us), true};
}

double proven(const Topology& topology, const Demand& demand, const Certificate& certificate) {
  const double us = sound_bound_of(topology, demand, certificate);
  EXPECT_EQ(us, bound_of(topology, demand, certificate));
  EXPECT_EQ(us, whole_chunk_bound_of(topology, demand, certificate));
  return us;
}

/// That the certificate proves the time of its GPU, and would not if that were later.
void expect_tight(const Topology& topology, const Demand& demand, TimeCutCertificate cut) {
  double& last_us = cut.alpha_us[topology.node_of(cut.gpu).index()];
  // Where bandwidth changes, of just as much as has to pass nothing follows.
  if (topology.has_bandwidth_steps()) last_us *= 1 - 1e-11;
  EXPECT_EQ(proven(topology, demand, cut), last_us);
  last_us *= 1 + 1e-9;
  expect_refused(topology, demand, cut, "from open to closed");
}

TEST(TimeCut, WaysJoinInWhenTheirFirstByteHasArrived) {
  // (T - 5) x 1 + (T - 6) x 3 KB. The cut around 0 and the switch gives 7.5 us.
  const Topology topology = two_paths();
  const Demand demand = custom(topology, {part(0, 10 * kUs, {1})});
  expect_tight(topology, demand, time_cut(1, {0, 33.0 / 4, 4}));
  EXPECT_DOUBLE_EQ(sound_bound_of(topology, demand, cut({0, 2}, 10 * kUs)), 7.5);
  // An earlier switch lets more pass it, a later one more get there.
  expect_refused(topology, demand, time_cut(1, {0, 33.0 / 4, 3.9}), "10300");
  expect_refused(topology, demand, time_cut(1, {0, 33.0 / 4, 4.1}), "from open to closed");
  // What is of no use is weaker, not wrong.
  EXPECT_EQ(proven(topology, demand, time_cut(1, {0, 8, 4})), 8);
}

TEST(TimeCut, NothingLeavesBeforeItIsReady) {
  const Topology topology = two_paths();
  const auto late = [&](double ready_us) { return custom(topology, {part(0, 10 * kUs, {1}, ready_us)}); };
  expect_tight(topology, late(3), time_cut(1, {3, 33.0 / 4 + 3, 7}));
  expect_refused(topology, late(2.9), time_cut(1, {3, 11, 7}), "nothing that GPU 1 wants");
}

TEST(TimeCut, MessageCostsCountWhereATransferBegins) {
  // Of the two links from GPU 0, not of the one from the switch.
  const Topology topology = two_paths(2);
  expect_tight(topology, custom(topology, {part(0, 10 * kUs, {1})}), time_cut(1, {0, 33.0 / 4 + 2, 6}));
  Fabric fabric(2);
  fabric.link(0, fabric.store_and_forward(1e9), 1, 1, 2);
  fabric.link(2, 1, 1, 1, 2);
  const Topology stored = fabric.build();
  expect_tight(stored, custom(stored, {part(0, 10 * kUs, {1})}), time_cut(1, {0, 16, 3}));
}

TEST(TimeCut, EveryoneWantsAllOfEveryone) {
  const Topology ring = one_way_ring();
  const Demand allgather = make_demand(Collective::allgather, 4e6, 4, 1);
  expect_tight(ring, allgather, time_cut(0, {301, 0, 0, 0}));
  expect_tight(ring, allgather, time_cut(0, {103, 0, 101, 102}));  // of GPU 1 alone
  // Only GPU 3's data is then open at first.
  expect_refused(ring, allgather, time_cut(0, {301, 1, 1, 0}), "1000000 have to pass");
}

TEST(TimeCut, SharedLinksCarryTheirGroupsFigureTogether) {
  // From 0 and 1 to 2 at 4 GB/s each, 1 and 3 us; together at most 5 GB/s.
  Fabric fabric(3);
  fabric.share({fabric.link(0, 2, 4, 1), fabric.link(1, 2, 4, 3)}, 5);
  const Topology nic = fabric.build();
  const auto wants = [&](double bytes) {
    return custom(nic, {part(0, bytes / 2, {2}), part(1, bytes / 2, {2})});
  };
  // Windows [0, T - 1) and [0, T - 3): 5 KB a us, and 4 in the last 2 us.
  expect_tight(nic, wants(28 * kUs), time_cut(2, {0, 0, 7}));
  // GPU 1 opens at 3 us: windows [0, 5) and [3, 3), of GPU 0's data alone.
  expect_tight(nic, wants(40 * kUs), time_cut(2, {0, 3, 6}));
}

TEST(TimeCut, ALinkInTwoGroupsCountsInTheOneThatHoldsBackMore) {
  for (const auto& [first, second] : {std::pair{3.0, 2.0}, std::pair{2.0, 3.0}}) {
    Fabric fabric(2);
    const int l = fabric.link(0, 1, 4, 1);
    fabric.share({l}, first);
    fabric.share({l}, second);
    const Topology nic = fabric.build();
    expect_tight(nic, custom(nic, {part(0, 4 * kUs, {1})}), time_cut(1, {0, 3}));
  }
}

TEST(TimeCut, StepsCountAsTheyAre) {
  // 10 GB/s, from 50 us on down, from 80 us on 5 GB/s; with a twin and a figure for both.
  const auto with = [&](bool twin, double message_us) {
    Fabric fabric(2);
    std::vector<int> links;
    for (int i = 0; i < (twin ? 2 : 1); ++i)
      links.push_back(fabric.changing_link(0, 1, {{0, 10}, {50, 0}, {80, 5}}, 1, message_us));
    if (twin) fabric.share(links, 8);
    return fabric.build();
  };
  const auto bytes = [](const Topology& t, double kilobytes) {
    return custom(t, {part(0, kilobytes * kUs, {1})});
  };
  const Topology one = with(false, 0);
  expect_tight(one, bytes(one, 400), time_cut(1, {0, 41}));
  expect_tight(one, bytes(one, 600), time_cut(1, {0, 101}));
  expect_tight(one, bytes(one, 500), time_cut(1, {0, 51}));
  // All may have passed when the link goes down, though nothing more does until 80 us.
  expect_refused(one, bytes(one, 500), time_cut(1, {0, 81}), "needs them to take less");
  EXPECT_EQ(proven(one, bytes(one, 500.001), time_cut(1, {0, 81})), 81);
  const Topology late = with(false, 10);
  expect_tight(late, bytes(late, 500), time_cut(1, {0, 101}));
  const Topology both = with(true, 0);
  expect_tight(both, bytes(both, 8 * 60), time_cut(1, {0, 91}));
}

TEST(TimeCut, ASumNeedsEachOfItsSources) {
  const Topology ring = one_way_ring();
  const Demand allreduce = make_demand(Collective::allreduce, 1e6, 4, 1);
  // Once, though all of 1, 2, 3 are open.
  expect_tight(ring, allreduce, time_cut(0, {101, 0, 0, 0}));
  expect_tight(ring, allreduce, time_cut(0, {103, 0, 101, 102}));
  Contribution held = sum_of({0, 1, 2}, 1e6, {3});
  held.held = {{GpuId{2}, gpus({1, 2})}};
  // GPU 1's is with GPU 2 too, GPU 0's is not.
  expect_refused(ring, custom(ring, {held}), time_cut(3, {101, 0, 100, 101}), "nothing that GPU 3 wants");
  expect_tight(ring, custom(ring, {held}), time_cut(3, {0, 101, 102, 103}));
  expect_tight(ring, custom(ring, {held}), time_cut(3, {101, 0, 0, 101}));
}

TEST(TimeCut, DataOfSeveralHoldersStartsOpenIfAllAreOpen) {
  const Topology ring = one_way_ring();
  Contribution either = sum_of({0, 1}, 1e6, {3});
  either.reduce = false;
  either.source_ready_us = {5, 0};
  const Demand demand = custom(ring, {either});
  expect_tight(ring, demand, time_cut(3, {5, 0, 101, 102}));
  expect_refused(ring, demand, time_cut(3, {6, 0, 101, 102}), "nothing that GPU 3 wants");
}

TEST(TimeCut, OfASourceInTheTransposedProblem) {
  // Links of two_paths() turned round: GPU 1 scatters, or every GPU has a part in GPU 0's sum.
  const Topology topology = transposed(two_paths());
  const Demand scatter = custom(topology, {part(1, 10 * kUs, {0})});
  const Demand reduce = custom(topology, {sum_of({0, 1}, 10 * kUs, {0})});
  for (const Demand& demand : {scatter, reduce}) {
    expect_tight(topology, demand, of_source(1, {0, 33.0 / 4, 4}));
    expect_tight(topology, demand, time_cut(0, {33.0 / 4, 0, 33.0 / 4 - 4}));  // either way the same
  }
  const Topology ring = one_way_ring();
  expect_tight(ring, make_demand(Collective::scatter, 4e6, 4, 1), of_source(0, {301, 0, 0, 0}));
  expect_tight(ring, make_demand(Collective::reduce_scatter, 4e6, 4, 1), of_source(0, {301, 0, 0, 0}));
  expect_refused(ring, make_demand(Collective::allgather, 4e6, 4, 1), of_source(0, {301, 0, 0, 0}),
                 "one destination each");
  Fabric changing(2);
  changing.changing_link(0, 1, {{0, 1}, {5, 2}});
  const Topology steps = changing.build();
  expect_refused(steps, custom(steps, {part(0, kUs, {1})}), of_source(0, {1, 0}), "bandwidth changes");
}

TEST(TimeCut, GroupsOfLinksThatDifferInLatencyLimitNothingBackwards) {
  for (const double second_us : {1.0, 3.0}) {
    Fabric fabric(3);
    fabric.share({fabric.link(0, 1, 4, 1), fabric.link(0, 2, 4, second_us)}, 4);
    const Topology nic = fabric.build();
    const Demand scatter = custom(nic, {part(0, 8 * kUs, {1}), part(0, 8 * kUs, {2})});
    // Windows [0, T - 1) and [0, T - second): together 4 KB a us, or 8.
    expect_tight(nic, scatter, of_source(0, {second_us == 1.0 ? 5.0 : 4.0, 0, 0}));
  }
}

TEST(TimeCut, RefusesWhatIsNone) {
  const Topology ring = one_way_ring();
  const Demand allgather = make_demand(Collective::allgather, 4e6, 4, 1);
  expect_refused(ring, allgather, time_cut(4, {1, 0, 0, 0}), "GPU 4 does not exist");
  expect_refused(ring, allgather, time_cut(-1, {1, 0, 0, 0}), "GPU -1 does not exist");
  expect_refused(ring, allgather, time_cut(0, {1, 0, 0}), "3 times; the fabric has 4 nodes");
  expect_refused(ring, allgather, time_cut(0, {1, 0, -1e-9, 0}), "node 2");
  expect_refused(ring, allgather, time_cut(0, {NAN, 0, 0, 0}), "node 0");
  expect_refused(ring, allgather, time_cut(0, {1, 0, 0, INFINITY}), "node 3");
  expect_refused(ring, allgather, time_cut(0, {0, 0, 0, 0}), "proves nothing");
  expect_refused(ring, allgather, time_cut(0, {1, 1, 1, 1}), "nothing that GPU 0 wants");
}

TEST(TimeCut, RoundingOfLargeTimesHelpsNobody) {
  // 1 byte over 1 GB/s, all of it late: from 2^60 us on a microsecond is lost in a double.
  Fabric fabric(2);
  fabric.link(0, 1, 1, 1);
  const Topology topology = fabric.build();
  const double late_us = std::ldexp(1.0, 60);
  const Demand demand = custom(topology, {part(0, 1, {1}, late_us)});
  EXPECT_EQ(proven(topology, demand, time_cut(1, {late_us, late_us})), late_us);
  expect_refused(topology, demand, time_cut(1, {late_us, std::nextafter(late_us, INFINITY)}),
                 "from open to closed");
}

}  // namespace
}  // namespace rondo::test_time_cut
