#include "certificates.hpp"

/// Time cuts that count contributions to sums one by one.
namespace rondo::test_counted_time_cut {
namespace {

TimeCutCertificate counted(std::vector<double> alpha_us, const std::vector<int>& sources) {
  return {.gpu = GpuId{0}, .alpha_us = std::move(alpha_us), .sources = gpus(sources)};
}

double proven(const Topology& topology, const Demand& demand, const Certificate& certificate) {
  const double us = sound_bound_of(topology, demand, certificate);
  EXPECT_EQ(us, bound_of(topology, demand, certificate));
  EXPECT_EQ(us, whole_chunk_bound_of(topology, demand, certificate));
  return us;
}

/// That the certificate proves the time of GPU 0, but for rounding, and would not if that were later.
void expect_tight(const Topology& topology, const Demand& demand, TimeCutCertificate cut) {
  const double us = cut.alpha_us.front();
  cut.alpha_us.front() = us * (1 - 1e-11);
  EXPECT_EQ(proven(topology, demand, cut), cut.alpha_us.front());
  cut.alpha_us.front() = us * (1 + 1e-9);
  expect_refused(topology, demand, cut, "from open to closed");
}

/// Four GPUs around switch 4, 1 GB/s and 1 us a link.
Topology star(Node centre, double message_us = 0) {
  TopologyData data;
  data.nodes.resize(4);
  data.nodes.push_back(std::move(centre));
  for (const bool in : {true, false}) {
    for (int g = 0; g < 4; ++g)
      data.links.push_back({NodeId{in ? g : 4}, NodeId{in ? 4 : g}, 1, 1, message_us});
  }
  return Topology(data);
}
Node passing(Forwarding forwarding = Forwarding::cut_through) {
  return {.kind = NodeKind::switch_, .multicast = true, .reduce = false, .forwarding = forwarding};
}
Node adding(Forwarding forwarding = Forwarding::cut_through) {
  Node node = passing(forwarding);
  node.reduce = true;
  return node;
}

/// 1 us of bytes of each of four.
Demand allreduce() {
  return make_demand(Collective::allreduce, kUs, 4, 1);
}

/// 1 and 2 have links to 0 and to each other, 1 GB/s and 1 us.
Fabric mesh() {
  Fabric fabric(3);
  for (const auto& [from, to] : {std::pair{1, 0}, {2, 0}, {1, 2}, {2, 1}}) fabric.link(from, to, 1, 1);
  return fabric;
}

TEST(CountedTimeCut, AByteHasNoMoreContributionsThanCanBeThere) {
  const Topology topology = star(passing());
  // At the switch one each from 1 us on, and what a GPU has added from 3 us on: 2 + 3 (T - 4) = 3.
  expect_tight(topology, allreduce(), counted({13.0 / 3, 0, 0, 0, 1}, {1, 2, 3}));
  EXPECT_EQ(proven(topology, allreduce(), counted({4, 0, 0, 0, 1}, {1, 2, 3})), 4);
  // If the switch opens later, 1, 2 and 3 have sent to it; if one of them does, its own starts closed.
  expect_refused(topology, allreduce(), counted({4.3, 0, 0, 0, 1.2}, {1, 2, 3}), "3000 have to pass");
  expect_refused(topology, allreduce(), counted({4.3, 0, 0, 0.1, 1}, {1, 2, 3}), "2000 have to pass");
}

TEST(CountedTimeCut, FewerSourcesCountLess) {
  const Topology topology = star(passing());
  expect_tight(topology, allreduce(), counted({3, 0, 0, 0, 1}, {3}));
  // As without a count.
  expect_tight(topology, allreduce(), {.gpu = GpuId{0}, .alpha_us = {3, 0, 0, 0, 1}});
  // 2 + 2 (T - 4) = 2.
  expect_tight(topology, allreduce(), counted({4, 0, 0, 0, 1}, {1, 3}));
  // GPU 0's own is not separated, but may be in what comes: 2 + 4 (T - 4) = 3.
  expect_tight(topology, allreduce(), counted({4.25, 0, 0, 0, 1}, {0, 1, 2, 3}));
}

TEST(CountedTimeCut, WhatASwitchAddsLeavesTogether) {
  // From 1 us on a byte may have all three: 3 (T - 2) = 3.
  expect_tight(star(adding()), allreduce(), counted({3, 0, 0, 0, 1}, {1, 2, 3}));
  expect_refused(star(adding()), allreduce(), counted({4, 0, 0, 0, 1}, {1, 2, 3}), "6000 bytes");
}

TEST(CountedTimeCut, MessageCostsCountWhereATransferBegins) {
  // From a GPU to the switch it takes 1.5 us, from there 1 us: (4 - 1.5) + 3 (T - 1 - 4) = 3.
  expect_tight(star(passing(), 0.5), allreduce(), counted({5 + 0.5 / 3, 0, 0, 0, 1.5}, {1, 2, 3}));
  expect_tight(star(adding(), 0.5), allreduce(), counted({3.5, 0, 0, 0, 1.5}, {1, 2, 3}));
  // One that stores begins transfers too: (4.5 - 1.5) + 3 (T - 1.5 - 4.5) = 3; if it adds, 3 (T - 3) = 3.
  const Forwarding stores = Forwarding::store_and_forward;
  expect_tight(star(passing(stores), 0.5), allreduce(), counted({6, 0, 0, 0, 1.5}, {1, 2, 3}));
  expect_tight(star(adding(stores), 0.5), allreduce(), counted({4, 0, 0, 0, 1.5}, {1, 2, 3}));
}

TEST(CountedTimeCut, SwitchesInARowPassOnWhatOneTransferBrings) {
  // 1 and 2 lead to switch 3, from there 4 and GPU 0; 1 us a link. Nobody adds: all have one: T - 3 = 2.
  const auto row = [](bool first_adds) {
    Fabric fabric(3);
    fabric.cut_through(true, first_adds);
    fabric.cut_through();
    for (const auto& [from, to] : {std::pair{1, 3}, {2, 3}, {3, 4}, {4, 0}}) fabric.link(from, to, 1, 1);
    return fabric.build();
  };
  const auto sum = [](const Topology& t) { return custom(t, {sum_of({0, 1, 2}, kUs, {0})}); };
  expect_tight(row(false), sum(row(false)), counted({5, 0, 0, 1, 2}, {1, 2}));
  expect_tight(row(true), sum(row(true)), counted({4, 0, 0, 1, 2}, {1, 2}));
}

TEST(CountedTimeCut, SharedLinksCarryTheirFigureAsOftenAsTheMostCounts) {
  Fabric fabric = mesh();
  fabric.share({0, 1}, 1);
  const Topology topology = fabric.build();
  const Demand demand = custom(topology, {sum_of({0, 1, 2}, 3 * kUs, {0})});
  // 1 GB/s up to 1 us, twice that then: 1 + 2 (T - 2) = 6.
  expect_tight(topology, demand, counted({4.5, 0, 0}, {1, 2}));
  // Without the group two links: 2 + 4 (T - 2) = 6.
  expect_tight(mesh().build(), demand, counted({3, 0, 0}, {1, 2}));
}

TEST(CountedTimeCut, OfEachSourceTheReadyTimeCounts) {
  const Topology topology = mesh().build();
  Contribution late = sum_of({0, 1, 2}, 3 * kUs, {0});
  late.source_ready_us = {0, 0, 2};
  const Demand demand = custom(topology, {late});
  // GPU 1 has GPU 2's from 3 us on; GPU 2 has GPU 1's when it opens: 3 + 2 (T - 4) + (2 - 1) + 2 (T - 3) = 6.
  expect_tight(topology, demand, counted({4, 0, 1}, {1, 2}));
  expect_refused(topology, demand, counted({4, 0, 2.1}, {1, 2}), "3000 have to pass");
  // With a second sum for which it is ready at once: then that counts, and 9 have to pass: 1 + 4 (T - 2) = 9.
  const Demand both = custom(topology, {late, sum_of({0, 1, 2}, 3 * kUs, {0})});
  expect_tight(topology, both, counted({4, 0, 1}, {1, 2}));
}

TEST(CountedTimeCut, SumsOfOtherSourcesAreOneAmount) {
  const Topology topology = mesh().build();
  // 3 us of each, though no byte has both: 2 + 4 (T - 2) = 6.
  const Demand apart = custom(topology, {sum_of({0, 1}, 3 * kUs, {0}), sum_of({0, 2}, 3 * kUs, {0})});
  expect_tight(topology, apart, counted({3, 0, 0}, {1, 2}));
  // For another destination a sum counts nothing, nor does data.
  const Demand others =
      custom(topology, {sum_of({1, 2}, 3 * kUs, {0}), sum_of({1, 2}, 9 * kUs, {2}), part(1, 9 * kUs, {0})});
  expect_tight(topology, others, counted({3, 0, 0}, {1, 2}));
}

TEST(CountedTimeCut, WhatIsHeldOfASumDoesNotCount) {
  const Topology topology = mesh().build();
  Contribution held = sum_of({0, 1, 2}, 3 * kUs, {0});
  held.held = {{GpuId{1}, gpus({1, 2})}, {GpuId{2}, {}}};
  expect_refused(topology, custom(topology, {held}), counted({3, 0, 0}, {1, 2}), "nothing that GPU 0 wants");
  expect_tight(topology, custom(topology, {held, sum_of({0, 1, 2}, 3 * kUs, {0})}),
               counted({3, 0, 0}, {1, 2}));
}

TEST(CountedTimeCut, RefusesWhatIsNone) {
  const Topology topology = star(passing());
  for (const std::vector<int>& sources :
       {std::vector{2, 1}, std::vector{1, 1}, std::vector{-1, 1}, std::vector{1, 4}})
    expect_refused(topology, allreduce(), counted({3, 0, 0, 0, 1}, sources), "sources have to ascend");
  expect_refused(topology, allreduce(), counted({3, 0, 0, 0, 1}, {0}), "nothing that GPU 0 wants");
  expect_refused(topology, allreduce(), counted({0, 0, 0, 0, 1}, {1}), "proves nothing");
  expect_refused(topology, make_demand(Collective::allgather, kUs, 4, 1), counted({3, 0, 0, 0, 1}, {1}),
                 "nothing that GPU 0 wants");
  // Sums for one GPU each are data for many in the transposed problem.
  TimeCutCertificate of_source = counted({3, 0, 0, 0, 1}, {1, 2});
  of_source.backwards = true;
  expect_refused(topology, make_demand(Collective::reduce_scatter, 4 * kUs, 4, 1), of_source,
                 "nothing that GPU 0 wants");
  Fabric changing(2);
  changing.changing_link(1, 0, {{0, 1}, {5, 2}});
  const Topology steps = changing.build();
  expect_refused(steps, custom(steps, {sum_of({0, 1}, kUs, {0})}), counted({1, 0}, {1}), "bandwidth changes");
}

}  // namespace
}  // namespace rondo::test_counted_time_cut
