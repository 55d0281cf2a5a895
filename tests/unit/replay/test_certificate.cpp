#include <cmath>
#include <limits>

#include "certificates.hpp"
#include "rondo/core/generators.hpp"

namespace rondo::test_certificate {
namespace {

/// Three GPUs around switch 3: 10 GB/s, 1 us up, 2 us down; links 0-2 go up, 3-5 down.
Topology star() {
  Fabric fabric(3);
  const int sw = fabric.cut_through();
  for (int g = 0; g < 3; ++g) fabric.link(g, sw, 10, 1);
  for (int g = 0; g < 3; ++g) fabric.link(sw, g, 10, 2);
  return fabric.build();
}

TEST(LatencyCertificate, IsTheLatencyDistance) {
  const Topology ring = one_way_ring();
  const Demand allgather = make_demand(Collective::allgather, 4e6, 4, 1);
  EXPECT_DOUBLE_EQ(bound_of(ring, allgather, LatencyCertificate{GpuId{0}, GpuId{3}}), 3);
  EXPECT_DOUBLE_EQ(bound_of(ring, allgather, LatencyCertificate{GpuId{3}, GpuId{0}}), 1);
  EXPECT_DOUBLE_EQ(
      bound_of(star(), make_demand(Collective::alltoall, 3e6, 3, 1), LatencyCertificate{GpuId{0}, GpuId{2}}),
      3);
}

TEST(LatencyCertificate, NeedsAPairThatExchangesData) {
  const Topology ring = one_way_ring();
  const Demand broadcast = make_demand(Collective::broadcast, 4e6, 4, 1, GpuId{1});
  EXPECT_DOUBLE_EQ(bound_of(ring, broadcast, LatencyCertificate{GpuId{1}, GpuId{0}}), 3);
  expect_refused(ring, broadcast, LatencyCertificate{GpuId{0}, GpuId{1}}, "sends nothing");
  expect_refused(ring, broadcast, LatencyCertificate{GpuId{1}, GpuId{1}}, "sends nothing");
  expect_refused(ring, broadcast, LatencyCertificate{GpuId{1}, GpuId{4}}, "GPU 4 does not exist");
  expect_refused(ring, broadcast, LatencyCertificate{GpuId{}, GpuId{0}}, "GPU -1 does not exist");
}

TEST(CutCertificate, ChunksCrossWhole) {
  // All but a corner of a square of 10 GB/s and 0 us links: three contributions of 1 MB, 100 us each, over
  // two links.
  Fabric fabric(4);
  for (int g = 0; g < 4; ++g) {
    fabric.link(g, (g + 1) % 4, 10, 0);
    fabric.link((g + 1) % 4, g, 10, 0);
  }
  const Topology square = fabric.build();
  const CutCertificate corner = cut({1, 2, 3}, 3e6);
  const auto whole_us = [&](int chunks) {
    const Demand demand = make_demand(Collective::allgather, 4e6, 4, chunks);
    EXPECT_DOUBLE_EQ(sound_bound_of(square, demand, corner), 150);
    return whole_chunk_bound_of(square, demand, corner);
  };
  EXPECT_DOUBLE_EQ(whole_us(1), 200);
  EXPECT_DOUBLE_EQ(whole_us(2), 150);
  EXPECT_NEAR(whole_us(3), 500.0 / 3, 1e-9);  // 9 chunks, 5 of them over one link

  // GPU 2 behind 20 and 10 GB/s: 50 us for the first chunk, 100 us for the second one over either link.
  Fabric uneven(3);
  uneven.link(0, 1, 10);
  uneven.link(1, 0, 10);
  uneven.link(0, 2, 20);
  uneven.link(1, 2, 10);
  uneven.link(2, 0, 20);
  const Topology triangle = uneven.build();
  const Demand demand = make_demand(Collective::allgather, 3e6, 3, 1);
  EXPECT_NEAR(sound_bound_of(triangle, demand, cut({0, 1}, 2e6)), 200.0 / 3, 1e-9);
  EXPECT_DOUBLE_EQ(whole_chunk_bound_of(triangle, demand, cut({0, 1}, 2e6)), 100);
}

TEST(CutCertificate, MulticastDataCrossesOnce) {
  const Topology ring = one_way_ring();
  const Demand allgather = make_demand(Collective::allgather, 4e6, 4, 1);
  // T, the link out, and on to the farthest GPU outside.
  EXPECT_DOUBLE_EQ(bound_of(ring, allgather, cut({0}, 1e6)), 100 + 1 + 2);
  EXPECT_DOUBLE_EQ(bound_of(ring, allgather, cut({0, 1}, 2e6)), 200 + 1 + 1);
  EXPECT_DOUBLE_EQ(bound_of(ring, allgather, cut({0, 1, 2}, 3e6)), 300 + 1);
  // Not an interval: links 0 -> 1 and 2 -> 3.
  EXPECT_DOUBLE_EQ(bound_of(ring, allgather, cut({0, 2}, 2e6)), 100 + 1 + 2);
}

TEST(CutCertificate, CopiesMayLeaveOverSeveralLinks) {
  // Three fully connected GPUs: from one of them, both others are reached at once.
  const Topology full =
      generate_topology("full", {{"gpus", "3"}, {"bandwidth_GBps", "10"}, {"latency_us", "1"}});
  const Demand allgather = make_demand(Collective::allgather, 3e6, 3, 1);
  EXPECT_DOUBLE_EQ(bound_of(full, allgather, cut({0}, 1e6)), 50 + 2);
  EXPECT_DOUBLE_EQ(sound_bound_of(full, allgather, cut({0}, 1e6)), 50 + 1);
  // With one destination outside, or one link out, both agree.
  EXPECT_DOUBLE_EQ(sound_bound_of(full, allgather, cut({0, 1}, 2e6)),
                   bound_of(full, allgather, cut({0, 1}, 2e6)));
}

TEST(CutCertificate, DoesNotDependOnChunks) {
  const Topology ring = one_way_ring();
  const Demand allgather = make_demand(Collective::allgather, 4e6, 4, 1);
  EXPECT_EQ(bound_of(ring, allgather, cut({0, 1}, 2e6)),
            bound_of(ring, allgather.with_chunks(7), cut({0, 1}, 2e6)));
}

TEST(CutCertificate, EveryPairThatCrossesCounts) {
  const Topology ring = one_way_ring();
  const Demand alltoall = make_demand(Collective::alltoall, 4e6, 4, 1);
  EXPECT_DOUBLE_EQ(bound_of(ring, alltoall, cut({0}, 3e6)), 300 + 1);
  EXPECT_DOUBLE_EQ(bound_of(ring, alltoall, cut({0, 1}, 4e6)), 400 + 1);
}

TEST(CutCertificate, ALinkBehindASwitchStartsLater) {
  // All but GPU 2: its downlink starts 1 us later, when the first byte has come up.
  const Demand allgather = make_demand(Collective::allgather, 3e6, 3, 1);
  EXPECT_DOUBLE_EQ(bound_of(star(), allgather, cut({0, 1, 3}, 2e6)), 1 + 200 + 2);
  EXPECT_DOUBLE_EQ(bound_of(star(), allgather, cut({0, 1}, 2e6)), 100 + 1 + 2);
}

TEST(CutCertificate, LinksJoinInOneByOne) {
  // 0 -> 1 directly from 0 us on at 1 GB/s, over the switch from 4 us on at 3 GB/s.
  Fabric fabric(2);
  const int sw = fabric.cut_through();
  fabric.link(0, 1, 1, 5);
  fabric.link(0, sw, 10, 4);
  fabric.link(sw, 1, 3, 2);
  const Topology topology = fabric.build();
  const auto bound_for = [&](double bytes) {
    return bound_of(topology, custom(topology, {part(0, bytes, {1})}), cut({0, 2}, bytes));
  };
  EXPECT_DOUBLE_EQ(bound_for(2 * kUs), 2 + 2);
  EXPECT_DOUBLE_EQ(bound_for(4 * kUs), 4 + 2);
  EXPECT_DOUBLE_EQ(bound_for(10 * kUs), 5.5 + 2);
}

TEST(CutCertificate, TakesTheChunkWithTheNearestAudience) {
  Fabric fabric(4);
  for (int g = 0; g < 3; ++g) fabric.link(g, g + 1, 1, 1);
  const Topology line = fabric.build();
  const Demand far = custom(line, {part(0, 10 * kUs, {2, 3}), part(0, 10 * kUs, {1, 3})});
  EXPECT_DOUBLE_EQ(bound_of(line, far, cut({0}, 20 * kUs)), 20 + 1 + 2);
  const Demand near = custom(line, {part(0, 10 * kUs, {2, 3}), part(0, 10 * kUs, {2})});
  EXPECT_DOUBLE_EQ(bound_of(line, near, cut({0}, 20 * kUs)), 20 + 1 + 1);
}

TEST(CutCertificate, IgnoresLinksThatNoGpuInsideReaches) {
  // Switch 3 belongs to the cut, but only GPU 2 outside leads to it.
  Fabric fabric(3);
  const int sw = fabric.cut_through();
  fabric.link(0, 1, 1, 1);
  fabric.link(0, 2, 1, 1);
  fabric.link(2, sw, 5, 0);
  fabric.link(sw, 1, 5, 0);
  const Topology topology = fabric.build();
  const Demand demand = custom(topology, {part(0, 10 * kUs, {1})});
  EXPECT_DOUBLE_EQ(bound_of(topology, demand, cut({0}, 10 * kUs)), 5 + 1);
  // From 0 over 2 the switch is reached after 1 us: it counts, from then on.
  EXPECT_DOUBLE_EQ(bound_of(topology, demand, cut({0, 3}, 20 * kUs / 2)), 1 + 8.0 / 7 + 0);
  Fabric apart(3);
  const int island = apart.cut_through();
  apart.link(0, 1, 1, 1);
  apart.link(island, 1, 5, 0);
  const Topology with_island = apart.build();
  EXPECT_DOUBLE_EQ(bound_of(with_island, demand, cut({0, 3}, 10 * kUs)), 10 + 1);
}

TEST(CutCertificate, Ndv2Pair) {
  // Two chassis of 8 GPUs, one link each way between them, 12.5 GB/s (published topology ndv2-2).
  struct Edge {
    int a;
    int b;
    double bandwidth_GBps;
  };
  const std::vector<Edge> edges = {{0, 1, 50}, {0, 2, 25}, {0, 3, 25}, {0, 4, 50}, {1, 2, 25}, {1, 3, 50},
                                   {1, 5, 25}, {2, 3, 50}, {2, 6, 50}, {3, 7, 25}, {4, 5, 50}, {4, 6, 25},
                                   {4, 7, 25}, {5, 6, 25}, {5, 7, 50}, {6, 7, 50}};
  Fabric fabric(16);
  for (const int first : {0, 8}) {
    for (const Edge& e : edges) {
      fabric.link(first + e.a, first + e.b, e.bandwidth_GBps, 0.7);
      fabric.link(first + e.b, first + e.a, e.bandwidth_GBps, 0.7);
    }
  }
  fabric.link(0, 9, 12.5, 1.3);
  fabric.link(8, 1, 12.5, 1.3);
  const Topology ndv2 = fabric.build();
  const Demand allgather = make_demand(Collective::allgather, 1e9, 16, 1);
  EXPECT_DOUBLE_EQ(bound_of(ndv2, allgather, cut({0, 1, 2, 3, 4, 5, 6, 7}, 5e8)), 40002.7);
  const Demand alltoall = make_demand(Collective::alltoall, 1e9, 16, 1);
  EXPECT_DOUBLE_EQ(bound_of(ndv2, alltoall, cut({0, 1, 2, 3, 4, 5, 6, 7}, 4e9)), 320001.3);
}

TEST(CutCertificate, ALargeFabric) {
  const Topology torus =
      generate_topology("torus", {{"dims", "32x32"}, {"bandwidth_GBps", "50"}, {"latency_us", "0.5"}});
  const Demand allgather = make_demand(Collective::allgather, 1024e6, 1024, 1);
  std::vector<int> all_but_one;
  for (int g = 0; g < 1023; ++g) all_but_one.push_back(g);
  EXPECT_NEAR(bound_of(torus, allgather, cut(all_but_one, 1023e6)), 1023e6 / 200e3 + 0.5, 1e-6);
}

TEST(CutCertificate, RefusesWhatDoesNotHold) {
  const Topology ring = one_way_ring();
  const Demand allgather = make_demand(Collective::allgather, 4e6, 4, 1);
  expect_refused(ring, allgather, cut({0, 4}, 1e6), "node 4");
  expect_refused(ring, allgather, cut({-1}, 1e6), "node -1");
  expect_refused(ring, allgather, cut({}, 0), "no byte");
  expect_refused(ring, allgather, cut({0, 1, 2, 3}, 4e6), "no byte");
  expect_refused(star(), make_demand(Collective::allgather, 3e6, 3, 1), cut({3}, 1e6), "no byte");
  for (const double bytes : {0.0, 1.0001e6, 2e6, -1e6, std::numeric_limits<double>::quiet_NaN()}) {
    expect_refused(ring, allgather, cut({0}, bytes), "the demand gives");
  }
  EXPECT_NO_THROW(bound_of(ring, allgather, cut({0}, 1e6 * (1 + 1e-10))));
}

TEST(BytesLeaving, CountsMulticastOnceAndPairsEach) {
  const Topology ring = one_way_ring();
  const std::vector<char> inside = {1, 1, 0, 0};
  EXPECT_DOUBLE_EQ(bytes_leaving(ring, make_demand(Collective::allgather, 4e6, 4, 3), inside), 2e6);
  EXPECT_DOUBLE_EQ(bytes_leaving(ring, make_demand(Collective::alltoall, 4e6, 4, 3), inside), 4e6);
  EXPECT_DOUBLE_EQ(bytes_leaving(ring, make_demand(Collective::broadcast, 4e6, 4, 1, GpuId{3}), inside), 0);
}

TEST(MetricCertificate, DividesDemandByCapacity) {
  const Topology ring = one_way_ring();
  const Demand alltoall = make_demand(Collective::alltoall, 4e6, 4, 1);
  // Pairs at distance 1, 2 and 3, four of each; four links; every byte spends 1 us on a link.
  EXPECT_DOUBLE_EQ(bound_of(ring, alltoall, MetricCertificate{{1, 1, 1, 1}}), 24e6 / 40e3 + 1);
  EXPECT_DOUBLE_EQ(bound_of(ring, alltoall, MetricCertificate{{5, 5, 5, 5}}), 24e6 / 40e3 + 1);
  // One link alone: 3 + 2 + 1 pairs cross it.
  EXPECT_DOUBLE_EQ(bound_of(ring, alltoall, MetricCertificate{{1, 0, 0, 0}}), 6e6 / 10e3 + 1);
  EXPECT_DOUBLE_EQ(bound_of(ring, alltoall.with_chunks(5), MetricCertificate{{1, 0, 0, 0}}), 6e6 / 10e3 + 1);
}

TEST(MetricCertificate, CountsTheWayToAndFromAGpu) {
  const Demand alltoall = make_demand(Collective::alltoall, 3e6, 3, 1);
  EXPECT_DOUBLE_EQ(bound_of(star(), alltoall, MetricCertificate{{1, 1, 1, 0, 0, 0}}), 6e6 / 30e3 + 3);
  EXPECT_DOUBLE_EQ(bound_of(star(), alltoall, MetricCertificate{{0, 0, 0, 1, 1, 1}}), 6e6 / 30e3 + 3);
  EXPECT_DOUBLE_EQ(bound_of(star(), alltoall, MetricCertificate{{1, 0, 0, 0, 0, 0}}), 2e6 / 10e3 + 3);
}

TEST(MetricCertificate, RefusesWhatDoesNotHold) {
  const Topology ring = one_way_ring();
  const Demand alltoall = make_demand(Collective::alltoall, 4e6, 4, 1);
  expect_refused(ring, make_demand(Collective::allgather, 4e6, 4, 1), MetricCertificate{{1, 1, 1, 1}},
                 "pairwise");
  expect_refused(ring, alltoall, MetricCertificate{{1, 1, 1}}, "3 lengths");
  expect_refused(ring, alltoall, MetricCertificate{{1, 1, 1, -1e-12}}, "link 3");
  expect_refused(ring, alltoall, MetricCertificate{{1, NAN, 1, 1}}, "link 1");
  expect_refused(ring, alltoall, MetricCertificate{{INFINITY, 1, 1, 1}}, "link 0");
  expect_refused(ring, alltoall, MetricCertificate{{0, 0, 0, 0}}, "keep some pair apart");
}

TEST(Certificate, NamesItsKind) {
  EXPECT_EQ(certificate_kind(LatencyCertificate{}), "latency");
  EXPECT_EQ(certificate_kind(CutCertificate{}), "cut");
  EXPECT_EQ(certificate_kind(MetricCertificate{}), "metric");
  EXPECT_EQ(certificate_kind(PartitionCertificate{}), "partition");
  EXPECT_EQ(certificate_kind(TimeCutCertificate{}), "time_cut");
  EXPECT_EQ(certificate_kind(PricesCertificate{}), "prices");
  EXPECT_EQ(certificate_kind(JointCutsCertificate{}), "joint_cuts");
  EXPECT_EQ(certificate_kind(KnowledgeCertificate{}), "knowledge");
  EXPECT_EQ(certificate_kind(MessagePricesCertificate{}), "message_prices");
}

}  // namespace
}  // namespace rondo::test_certificate
