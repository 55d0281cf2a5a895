#include <algorithm>

#include "certificates.hpp"
#include "rondo/core/generators.hpp"
#include "rondo/core/index.hpp"

namespace rondo::test_sum_certificate {
namespace {

std::vector<GpuId> gpus(const std::vector<int>& ids) {
  std::vector<GpuId> result;
  for (const int id : ids) result.emplace_back(id);
  return result;
}

Contribution sum(const std::vector<int>& sources, double bytes, const std::vector<int>& destinations) {
  Contribution result{GpuId(sources.front()), bytes, gpus(destinations)};
  result.sources = gpus(sources);
  result.reduce = sources.size() > 1;
  return result;
}

/// Three GPUs around switch 3: 10 GB/s, 1 us up, 2 us down; links 0-2 go up, 3-5 down.
Topology switched(bool multicast, bool reduce) {
  Fabric fabric(3);
  const int sw = fabric.cut_through(multicast);
  for (int g = 0; g < 3; ++g) fabric.link(g, sw, 10, 1);
  for (int g = 0; g < 3; ++g) fabric.link(sw, g, 10, 2);
  TopologyData data = fabric.build().data();
  data.nodes[3].reduce = reduce;
  return Topology(std::move(data));
}

double sound(const Topology& topology, const Demand& demand, const Certificate& certificate) {
  const double us = sound_bound_of(topology, demand, certificate);
  EXPECT_LE(us, bound_of(topology, demand, certificate));
  return us;
}

TEST(Partition, EveryByteEntersTwiceLessTwo) {
  const Topology ring = one_way_ring();
  const Demand allreduce = make_demand(Collective::allreduce, 4e6, 4, 1);
  // 6 x 4 MB over 4 links of 10 GB/s; 2 x 4 MB over 2 links.
  EXPECT_DOUBLE_EQ(sound(ring, allreduce, PartitionCertificate{{0, 1, 2, 3}}), 600 + 1);
  EXPECT_DOUBLE_EQ(sound(ring, allreduce, PartitionCertificate{{0, 1, 2, 3}, false}), 600 + 1);
  EXPECT_DOUBLE_EQ(sound(ring, allreduce, PartitionCertificate{{0, 0, 1, 1}}), 400 + 1);
  // Six chunks over four links: two of 400 us over some.
  EXPECT_DOUBLE_EQ(whole_chunk_bound_of(ring, allreduce, PartitionCertificate{{0, 1, 2, 3}}), 800 + 1);
  EXPECT_DOUBLE_EQ(whole_chunk_bound_of(ring, allreduce.with_chunks(2), PartitionCertificate{{0, 1, 2, 3}}),
                   600 + 1);
}

TEST(Partition, CountsLinksOfOneSideOfASwitchOutside) {
  const Demand allreduce = make_demand(Collective::allreduce, 3e6, 3, 1);
  // 4 x 3 MB over three links down of 2 us, or three up of 1 us.
  EXPECT_DOUBLE_EQ(sound(switched(true, false), allreduce, PartitionCertificate{{0, 1, 2, -1}}), 400 + 2);
  EXPECT_DOUBLE_EQ(sound(switched(false, true), allreduce, PartitionCertificate{{0, 1, 2, -1}, false}),
                   400 + 1);
  // With the switch: into GPUs 1 and 2 from it, and from them to it.
  EXPECT_DOUBLE_EQ(sound(switched(true, true), allreduce, PartitionCertificate{{0, 1, 2, 0}}), 300 + 1);
  expect_refused(switched(true, true), allreduce, PartitionCertificate{{0, 1, 2, -1}}, "switch 3 may add");
  expect_refused(switched(true, false), allreduce, PartitionCertificate{{0, 1, 2, -1}, false},
                 "switch 3 may copy");
}

TEST(Partition, CountsSumsThatAllSetsGiveToAndWant) {
  const Topology ring = one_way_ring();
  const Contribution everywhere = sum({0, 1, 2, 3}, 1e6, {0, 1, 2, 3});
  const auto bound_with = [&](const std::vector<Contribution>& others, const std::vector<int>& part) {
    std::vector<Contribution> all{everywhere};
    all.insert(all.end(), others.begin(), others.end());
    return sound(ring, custom(ring, all), PartitionCertificate{part});
  };
  const double alone = bound_with({}, {0, 1, 2, 3});
  EXPECT_DOUBLE_EQ(alone, 150 + 1);
  const Contribution without_0 = sum({1, 2, 3}, 1e6, {1, 2, 3});
  const Contribution for_one = sum({0, 1, 2, 3}, 1e6, {2});
  const Contribution plain = part(0, 1e6, {1, 2, 3});
  Contribution held = everywhere;
  held.held = {{GpuId{0}, gpus({0, 1})}};  // what GPU 1 has is no news to GPU 0
  EXPECT_DOUBLE_EQ(bound_with({without_0, for_one, plain, held}, {0, 1, 2, 3}), alone);
  held.held = {{GpuId{2}, gpus({0, 2})}, {GpuId{3}, gpus({0, 3})}};
  EXPECT_DOUBLE_EQ(bound_with({held}, {0, 0, 1, 1}), 200 + 1);  // GPU 1 alone has its own
  // Source and destination of a set may be different GPUs.
  EXPECT_DOUBLE_EQ(bound_with({without_0, sum({0, 2}, 1e6, {1, 3})}, {0, 0, 1, 1}), 300 + 1);
  expect_refused(ring, custom(ring, {without_0, for_one, plain, held}), PartitionCertificate{{0, 1, 2, 3}},
                 "no sum has a source and a destination in every set");
}

TEST(Partition, RefusesWhatIsNone) {
  const Topology fabric = switched(true, false);
  const Demand allreduce = make_demand(Collective::allreduce, 3e6, 3, 1);
  const auto refused = [&](const std::vector<int>& part, const std::string& word) {
    expect_refused(fabric, allreduce, PartitionCertificate{part}, word);
  };
  refused({0, 1, 2}, "3 entries");
  refused({0, 1, 2, -2}, "node 3 is in set -2");
  refused({0, 1, 99, -1}, "node 2 is in set 99");
  refused({0, 1, -1, -1}, "node 2 is a GPU outside");
  refused({0, 0, 0, -1}, "1 sets");
  refused({0, 0, 2, -1}, "set 1 has no GPU");
  refused({0, 0, 0, 1}, "set 1 has no GPU");
  expect_refused(one_way_ring(), make_demand(Collective::allgather, 4e6, 4, 1),
                 PartitionCertificate{{0, 1, 2, 3}}, "no sum");
}

TEST(CutOfSums, AnySourceInsideHasToGetOut) {
  const Topology ring = one_way_ring();
  const Demand allreduce = make_demand(Collective::allreduce, 4e6, 4, 1);
  // Over the link 0 -> 1 and on to GPU 3.
  EXPECT_DOUBLE_EQ(sound(ring, allreduce, cut({0}, 4e6)), 400 + 1 + 2);
  EXPECT_DOUBLE_EQ(sound(ring, allreduce, cut({1, 2, 3}, 4e6)), 400 + 1);
  EXPECT_DOUBLE_EQ(sound(ring, custom(ring, {sum({0, 1}, 1e6, {1, 2})}), cut({1, 3}, 1e6)), 50 + 1);
  expect_refused(ring, allreduce, cut({0}, 1e6), "the demand gives 4000000");
  expect_refused(ring, custom(ring, {sum({0, 1}, 1e6, {1, 2})}), cut({0, 1, 2}, 1e6), "no byte");
}

TEST(CutOfSums, DataOfSeveralHoldersLeavesOnlyIfAllAreInside) {
  const Topology ring = one_way_ring();
  Contribution either = sum({0, 1}, 1e6, {2});
  either.reduce = false;
  const Demand any = custom(ring, {either});
  ASSERT_EQ(any.kind(), DemandKind::all_reduction);
  EXPECT_DOUBLE_EQ(sound(ring, any, cut({0, 1}, 1e6)), 100 + 1);
  expect_refused(ring, any, cut({1}, 1e6), "no byte");
  EXPECT_DOUBLE_EQ(bound_of(ring, any, LatencyCertificate{GpuId{0}, GpuId{2}}), 1);  // from GPU 1
}

TEST(CutOfSums, WhatOthersHoldAtFirstNeedNotLeave) {
  const Topology ring = one_way_ring();
  Contribution live = sum({0, 1, 2}, 1e6, {3});
  live.held = {{GpuId{0}, gpus({0, 1})}, {GpuId{1}, gpus({1})}};
  const Demand demand = custom(ring, {live});
  ASSERT_EQ(demand.kind(), DemandKind::all_reduction);
  expect_refused(ring, demand, cut({1}, 1e6), "no byte");
  EXPECT_DOUBLE_EQ(sound(ring, demand, cut({0, 1}, 1e6)), 100 + 1 + 1);
  // GPU 0 has given its own data away: it is with GPU 1 alone.
  live.held = {{GpuId{0}, gpus({2})}, {GpuId{1}, gpus({0, 1})}, {GpuId{2}, gpus({2})}};
  EXPECT_DOUBLE_EQ(sound(ring, custom(ring, {live}), cut({1}, 1e6)), 100 + 1 + 1);
  EXPECT_DOUBLE_EQ(bound_of(ring, custom(ring, {live}), LatencyCertificate{GpuId{0}, GpuId{3}}), 2);
  expect_refused(ring, custom(ring, {live}), cut({0}, 1e6), "no byte");
}

TEST(CutOfSums, SumsForOneGpuEnterIt) {
  const Topology ring = one_way_ring();
  const Demand reduce_scatter = make_demand(Collective::reduce_scatter, 4e6, 4, 1);
  ASSERT_EQ(reduce_scatter.kind(), DemandKind::reduction);
  // Sums for GPUs 1 and 2 come over the link 0 -> 1: 2 MB, from GPU 3 two links before.
  EXPECT_DOUBLE_EQ(sound(ring, reduce_scatter, cut({1, 2}, 2e6)), 200 + 1 + 1);
  EXPECT_DOUBLE_EQ(sound(ring, reduce_scatter, cut({0}, 1e6)), 100 + 1 + 2);
  EXPECT_DOUBLE_EQ(bound_of(ring, reduce_scatter, LatencyCertificate{GpuId{1}, GpuId{0}}), 3);
  EXPECT_DOUBLE_EQ(bytes_leaving(ring, reduce_scatter, {0, 1, 1, 0}), 2e6);
  expect_refused(ring, reduce_scatter, cut({0}, 3e6), "the demand gives 1000000");
  // Two uneven ways into GPU 2; the slower one starts later.
  Fabric fabric(3);
  fabric.link(0, 1, 10, 5);
  fabric.link(0, 2, 1, 1);
  fabric.link(1, 2, 3, 0);
  const Topology triangle = fabric.build();
  Contribution late = sum({0, 1}, 8 * kUs, {2});
  late.ready_us = 7;
  EXPECT_DOUBLE_EQ(sound(triangle, custom(triangle, {late}), cut({2}, 8 * kUs)), 2 + 1);
}

TEST(CutOfSums, EqualsThatOfTheTransposedProblem) {
  const Topology dgx = generate_topology("star", {{"chassis", "2"}, {"gpus", "3"}, {"uplinks", "1"}});
  const Demand sums = make_demand(Collective::reduce_scatter, 6e6, 6, 1);
  const Demand spread = make_demand(Collective::allgather, 6e6, 6, 1);
  // Every link has a twin that leads back, so that the fabric turned round is the same.
  for (const std::vector<int>& set : {std::vector{0}, {0, 1, 2}, {1, 4}}) {
    const CutCertificate same = cut(set, 1e6 * static_cast<double>(set.size()));
    EXPECT_EQ(bound_of(dgx, sums, same), bound_of(dgx, spread, same));
    EXPECT_EQ(sound_bound_of(dgx, sums, same), sound_bound_of(dgx, spread, same));
    EXPECT_EQ(whole_chunk_bound_of(dgx, sums, same), whole_chunk_bound_of(dgx, spread, same));
  }
}

/// 0 -> 1 at 10 GB/s, from 50 us on down, from 80 us on at 5 GB/s; 1 us.
Topology with_steps(double last_GBps = 5) {
  Fabric fabric(2);
  fabric.link(0, 1, 10, 1);
  TopologyData data = fabric.build().data();
  data.links[0].bandwidth_steps = {{0, 10}, {50, 0}, {80, last_GBps}};
  return Topology(std::move(data));
}

TEST(Steps, ACutCarriesTheIntegralOfTheBandwidth) {
  const Topology link = with_steps();
  const auto us = [&](double bytes) {
    return sound(link, custom(link, {part(0, bytes, {1})}), cut({0}, bytes));
  };
  EXPECT_DOUBLE_EQ(us(4e5), 40 + 1);
  EXPECT_DOUBLE_EQ(us(5e5), 50 + 1);
  EXPECT_DOUBLE_EQ(us(6e5), 100 + 1);
  EXPECT_DOUBLE_EQ(us(1e6), 180 + 1);
  const Topology down = with_steps(0);
  expect_refused(down, custom(down, {part(0, 6e5, {1})}), cut({0}, 6e5), "down");
  // Sums of many bytes that fill the link up to the moment when it goes down.
  for (int n = 1; n < 50; ++n) {
    const Demand many = custom(link, std::vector<Contribution>(index(n), part(0, 5e5 / n, {1})));
    EXPECT_NEAR(bound_of(link, many, cut({0}, 5e5)), 51, 1e-9) << n;
  }
}

TEST(Steps, AMetricShiftsThemByTheLatencyBehind) {
  const Topology link = with_steps();
  const auto us = [&](double bytes) {
    return sound(link, custom(link, {part(0, bytes, {1})}), MetricCertificate{{2}});
  };
  EXPECT_DOUBLE_EQ(us(5e5), 50 + 1);
  EXPECT_DOUBLE_EQ(us(6e5), 100 + 1);
}

TEST(Steps, LinksThatStartLaterUseTheBandwidthOfThen) {
  // 0 -> switch in 60 us, from there on 4 GB/s until 30 us, then 1 GB/s until 70 us, then 2 GB/s.
  Fabric fabric(2);
  fabric.link(0, fabric.cut_through(), 10, 60);
  fabric.link(2, 1, 4, 3);
  TopologyData data = fabric.build().data();
  data.links[1].bandwidth_steps = {{0, 4}, {30, 1}, {70, 2}};
  const Topology chain(std::move(data));
  const auto us = [&](double bytes) {
    return sound(chain, custom(chain, {part(0, bytes, {1})}), cut({0, 2}, bytes));
  };
  EXPECT_DOUBLE_EQ(us(5 * kUs), 65 + 3);
  EXPECT_DOUBLE_EQ(us(14 * kUs), 72 + 3);
}

TEST(Steps, APartitionCountsThemAndSumsForOneGpuAreRefused) {
  Fabric fabric(2);
  fabric.link(0, 1, 10, 1);
  fabric.link(1, 0, 10, 1);
  TopologyData data = fabric.build().data();
  data.links[0].bandwidth_steps = {{0, 10}, {50, 0}};
  const Topology pair(std::move(data));
  // 2 MB: 500 KB until the one link goes down, 1.5 MB over the other one.
  EXPECT_DOUBLE_EQ(sound(pair, make_demand(Collective::allreduce, 1e6, 2, 1), PartitionCertificate{{0, 1}}),
                   150 + 1);
  expect_refused(pair, make_demand(Collective::reduce, 1e6, 2, 1), cut({0}, 1e6), "bandwidth changes",
                 ExitCode::bad_data);
}

}  // namespace
}  // namespace rondo::test_sum_certificate
