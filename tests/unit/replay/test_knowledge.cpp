#include <algorithm>
#include <cmath>

#include "alike_places.hpp"
#include "certificates.hpp"
#include "rondo/core/transposition.hpp"

/// What GPUs can have by when. Times of the certificates are a little earlier than sums of delays: what
/// starts just as something arrives has it.
namespace rondo::test_knowledge {
namespace {

constexpr double kEarlier = 1 - 1e-8;

std::vector<double> earlier(std::vector<double> times) {
  for (double& us : times) us *= kEarlier;
  return times;
}

KnowledgeCertificate knowledge(int gpu, const std::vector<int>& sources, const std::vector<double>& times,
                               const std::vector<std::vector<int>>& sets = {}) {
  KnowledgeCertificate result{GpuId{gpu}, gpus(sources), {}, earlier(times)};
  for (const std::vector<int>& set : sets) {
    auto& nodes = result.sets.emplace_back();
    for (const int n : set) nodes.emplace_back(n);
  }
  return result;
}

KnowledgeCertificate of_source(KnowledgeCertificate certificate) {
  certificate.backwards = true;
  return certificate;
}

void expect_proves(const Topology& topology, const Demand& demand, const KnowledgeCertificate& certificate,
                   double us) {
  EXPECT_DOUBLE_EQ(sound_bound_of(topology, demand, certificate), us * kEarlier);
  EXPECT_EQ(bound_of(topology, demand, certificate), sound_bound_of(topology, demand, certificate));
}

/// That it proves its last time, and nothing later.
void expect_tight(const Topology& topology, const Demand& demand, KnowledgeCertificate certificate) {
  expect_proves(topology, demand, certificate, certificate.times_us.back() / kEarlier);
  certificate.times_us.push_back(certificate.times_us.back() * (1 + 1e-3));
  expect_refused(topology, demand, certificate, "may have all");
}

/// Four GPUs around a switch, the last node. A message costs 1 us on each link; a KB takes a millionth of
/// that.
Topology costly_star(bool multicast = true, bool reduce = false) {
  Fabric fabric(4);
  const int sw = fabric.cut_through(multicast, reduce);
  for (int g = 0; g < 4; ++g) fabric.link(g, sw, 1e6, 0, 1);
  for (int g = 0; g < 4; ++g) fabric.link(sw, g, 1e6, 0, 1);
  return fabric.build();
}

TEST(Knowledge, DoublesWithEachMessage) {
  // After 1 us a GPU has what two brought, after 2 us what four did: as recursive doubling does it.
  const Demand allgather = make_demand(Collective::allgather, 4 * kUs, 4, 1);
  expect_tight(costly_star(), allgather, knowledge(0, {1, 2, 3}, {0, 1, 2}));
  expect_tight(costly_star(), allgather, knowledge(0, {1}, {0, 1}));
  expect_tight(costly_star(), allgather, knowledge(0, {1, 2}, {0, 1, 2}));
  const Demand alltoall = make_demand(Collective::alltoall, 4 * kUs, 4, 1);
  expect_tight(costly_star(), alltoall, knowledge(3, {0, 1, 2}, {0, 1, 2}));
  // Of periods that are longer than a message costs nothing is known before they end.
  expect_refused(costly_star(), allgather, knowledge(0, {1, 2, 3}, {0, 2}), "soon after 0 us");
}

TEST(Knowledge, OfSumsCountsTheDataOfEachSource) {
  for (const Collective collective :
       {Collective::allreduce, Collective::reduce_scatter, Collective::reduce}) {
    const Demand demand = make_demand(collective, 4 * kUs, 4, 1);
    expect_tight(costly_star(), demand, knowledge(0, {0, 1, 2, 3}, {0, 1, 2}));
    // A switch that adds brings the data of all with one message.
    expect_tight(costly_star(true, true), demand, knowledge(0, {0, 1, 2, 3}, {0, 1}));
  }
}

TEST(Knowledge, GrowsNoFasterThanLinksCarry) {
  // 10 us of data behind a message cost of 1 us.
  Fabric fabric(3);
  fabric.link(0, 1, 1, 0.5, 1);
  fabric.link(1, 2, 1, 0.5, 1);
  const Topology line = fabric.build();
  const Demand demand = custom(line, {part(0, 10 * kUs, {1, 2})});
  expect_proves(line, demand, knowledge(1, {0}, {0, 11.5 - 1e-5}), 11.5 - 1e-5);
  expect_refused(line, demand, knowledge(1, {0}, {0, 11.5 + 1e-5}), "may have all");
  // GPU 2 as soon after GPU 1 as a message takes, which has the time as a period of its own.
  expect_proves(line, demand, knowledge(2, {0}, {0, 11.5 - 1e-5, 13 - 1e-4}), 13 - 1e-4);
  // A link that is faster later counts as if it were so always.
  Fabric changing(2);
  changing.changing_link(0, 1, {{0, 1}, {5, 2}}, 0, 1);
  const Topology steps = changing.build();
  expect_proves(steps, custom(steps, {part(0, 10 * kUs, {1})}), knowledge(1, {0}, {0, 6 - 1e-5}), 6 - 1e-5);
}

TEST(Knowledge, OfALaterMessageTakesMoreOfALink) {
  // 10 us of data at first and as much 5 us later. Messages of the latter that end by 1 + z take 1 / (z - 5)
  // more of the link than their bytes, behind the first message cost: (z - 20) (z - 5) = 10.
  const double z = (25 + std::sqrt(25.0 * 25 - 4 * 90)) / 2;
  Fabric one(2);
  one.link(0, 1, 1, 0, 1);
  const Topology link = one.build();
  const Demand late = custom(link, {part(0, 10 * kUs, {1}), part(0, 10 * kUs, {1}, 5)});
  expect_proves(link, late, knowledge(1, {0}, {0, 5, 1 + z - 1e-4}), 1 + z - 1e-4);
  expect_refused(link, late, knowledge(1, {0}, {0, 5, 1 + z + 1e-4}), "may have all");
  const Demand at_first = custom(link, {part(0, 10 * kUs, {1}), part(0, 10 * kUs, {1})});
  expect_proves(link, at_first, knowledge(1, {0}, {0, 5, 21 - 1e-4}), 21 - 1e-4);
  expect_refused(link, at_first, knowledge(1, {0}, {0, 5, 21 + 1e-4}), "may have all");
  // Where some bandwidth changes, bytes alone count.
  Fabric changing(3);
  changing.link(0, 1, 1, 0, 1);
  changing.changing_link(1, 2, {{0, 1}, {5, 2}}, 0, 1);
  const Topology steps = changing.build();
  const Demand beside = custom(steps, late.contributions());
  expect_proves(steps, beside, knowledge(1, {0}, {0, 5, 21 - 1e-4}), 21 - 1e-4);
  expect_refused(steps, beside, knowledge(1, {0}, {0, 5, 21 + 1e-4}), "may have all");
  // From the end on: what GPU 2 wants has left GPU 0 by 5 us before it.
  Fabric relayed(3);
  relayed.link(0, 1, 1, 0, 1);
  relayed.link(1, 2, 1e6, 4, 1);
  const Topology line = relayed.build();
  const Demand parts = custom(line, {part(0, 10 * kUs, {1}), part(0, 10 * kUs, {2})});
  expect_proves(line, parts, of_source(knowledge(0, {1, 2}, {0, 5, 1 + z - 1e-4})), 1 + z - 1e-4);
  expect_refused(line, parts, of_source(knowledge(0, {1, 2}, {0, 5, 1 + z + 1e-4})), "may have all");
}

TEST(Knowledge, WaitsForWhatComesSoonOrForTheNextMessage) {
  // As much 0.5 us later: both wait for it, and are there 0.5 + 1 + 20 us after the start, or the second
  // message starts 1 us after the first one. Backwards they need not: (z - 20) (z - 0.5) = 5.
  Fabric one(2);
  one.link(0, 1, 1, 0, 1);
  const Topology link = one.build();
  const Demand soon = custom(link, {part(0, 10 * kUs, {1}), part(0, 10 * kUs, {1}, 0.5)});
  expect_proves(link, soon, knowledge(1, {0}, {0, 0.5, 21.5 - 1e-4}), 21.5 - 1e-4);
  expect_refused(link, soon, knowledge(1, {0}, {0, 0.5, 21.5 + 1e-4}), "may have all");
  Fabric relayed(3);
  relayed.link(0, 1, 1, 0, 1);
  relayed.link(1, 2, 1e6, 0.1, 0.4);
  const Topology line = relayed.build();
  const Demand parts = custom(line, {part(0, 10 * kUs, {1}), part(0, 10 * kUs, {2})});
  const double z = (20.5 + std::sqrt(20.5 * 20.5 - 4 * 5)) / 2;
  expect_proves(line, parts, of_source(knowledge(0, {1, 2}, {0, 0.5, 1 + z - 1e-4})), 1 + z - 1e-4);
  expect_refused(line, parts, of_source(knowledge(0, {1, 2}, {0, 0.5, 1 + z + 1e-4})), "may have all");
}

TEST(Knowledge, OfSeveralOriginsStartsOneAfterAnother) {
  // 10 us of data from each of three GPUs over one link: the second message starts 1 us after the first one,
  // the third another 1 us later. Backwards messages end so, and may start together.
  Fabric fabric(4);
  const int sw = fabric.cut_through(false);
  for (int g = 0; g < 4; ++g) fabric.link(g, sw, 1, 0, 1);
  for (int g = 0; g < 4; ++g) fabric.link(sw, g, 1, 0, 1);
  const Topology star = fabric.build();
  const KnowledgeCertificate certificate = knowledge(0, {1, 2, 3}, {0, 1, 2, 31.6});
  expect_proves(star, make_demand(Collective::gather, 40 * kUs, 4, 1), certificate, 31.6);
  expect_refused(star, make_demand(Collective::scatter, 40 * kUs, 4, 1), of_source(certificate),
                 "may have all");
  expect_proves(star, make_demand(Collective::scatter, 40 * kUs, 4, 1),
                of_source(knowledge(0, {1, 2, 3}, {0, 1, 2, 31 - 1e-4})), 31 - 1e-4);
}

TEST(Knowledge, OfASetIsWhatEntersIt) {
  // From 0 to 1 and 2, then from both to 3: GPU 3 hears the same twice.
  Fabric fabric(4);
  fabric.link(0, 1, 1, 0, 1);
  fabric.link(0, 2, 1, 0, 1);
  fabric.link(1, 3, 100, 0, 1);
  fabric.link(2, 3, 100, 0, 1);
  const Topology diamond = fabric.build();
  const Demand demand = custom(diamond, {part(0, 10 * kUs, {3})});
  // Over both links 10 us of data take 5 us; a copy of what is at 1 and at 2 would bring it before.
  std::vector<double> times = {0, 1, 2, 3, 4, 5, 6 - 1e-5};
  expect_proves(diamond, demand, knowledge(3, {0}, times, {{1, 2, 3}}), 6 - 1e-5);
  times.push_back(7 - 1e-4);
  expect_proves(diamond, demand, knowledge(3, {0}, times, {{1, 2, 3}}), 7 - 1e-4);
  times.back() = 7 + 1e-4;
  expect_refused(diamond, demand, knowledge(3, {0}, times, {{1, 2, 3}}), "may have all");
}

TEST(Knowledge, IsThereWhenItIsReadyAndWithAllWhoHoldIt) {
  const Topology fabric = costly_star();
  const auto late = [&](double ready_us) { return custom(fabric, {part(1, kUs, {0}, ready_us)}); };
  expect_tight(fabric, late(3), knowledge(0, {1}, {0, 1, 2, 3, 4}));
  expect_refused(fabric, late(2), knowledge(0, {1}, {0, 1, 2, 3, 4}), "soon after 2.99");
  Contribution either = sum_of({0, 1}, kUs, {3});
  either.reduce = false;
  either.source_ready_us = {5, 1};
  expect_tight(fabric, custom(fabric, {either}), knowledge(3, {0}, {0, 1, 2}));
  expect_refused(fabric, custom(fabric, {either}), knowledge(3, {1}, {0, 1}), "wants nothing");
  // GPU 1 begins with the sum of its own and 2's.
  Contribution told = sum_of({1, 2}, kUs, {3});
  told.held = {{GpuId{1}, gpus({1, 2})}, {GpuId{2}, {}}};
  expect_tight(fabric, custom(fabric, {told}), knowledge(3, {1, 2}, {0, 1}));
}

TEST(Knowledge, WaitsInStoreAndForwardSwitches) {
  Fabric fabric(2);
  const int sw = fabric.store_and_forward(1e9);
  fabric.link(0, sw, 1e6, 1, 2);
  fabric.link(sw, 1, 1e6, 1, 2);
  const Topology stored = fabric.build();
  expect_tight(stored, custom(stored, {part(0, kUs, {1})}), knowledge(1, {0}, {0, 3, 6}));
  expect_tight(costly_star(), custom(costly_star(), {part(0, kUs, {1})}), knowledge(1, {0}, {0, 1}));
}

TEST(Knowledge, OfASourceInTheTransposedProblem) {
  // Gather and Scatter without copies in the switch: three parts, the first in one message, the rest in
  // another.
  const Topology alone = costly_star(false);
  expect_tight(alone, make_demand(Collective::gather, 4 * kUs, 4, 1), knowledge(0, {1, 2, 3}, {0, 1, 2}));
  expect_tight(alone, make_demand(Collective::scatter, 4 * kUs, 4, 1),
               of_source(knowledge(0, {1, 2, 3}, {0, 1, 2})));
  expect_tight(alone, make_demand(Collective::reduce_scatter, 4 * kUs, 4, 1),
               of_source(knowledge(0, {1, 2, 3}, {0, 1, 2})));
  // One that copies spreads all with one message.
  expect_tight(costly_star(), make_demand(Collective::scatter, 4 * kUs, 4, 1),
               of_source(knowledge(0, {1, 2, 3}, {0, 1})));
  expect_refused(costly_star(), make_demand(Collective::allgather, 4 * kUs, 4, 1),
                 of_source(knowledge(0, {1}, {0, 1})), "one destination each");
  const auto turned = std::get<KnowledgeCertificate>(transposed(Certificate{knowledge(0, {1}, {0, 1})}));
  EXPECT_TRUE(turned.backwards);
}

TEST(Knowledge, RefusesWhatIsNone) {
  const Topology fabric = costly_star();
  const Demand demand = make_demand(Collective::allgather, 4 * kUs, 4, 1);
  const KnowledgeCertificate whole = knowledge(0, {1, 2, 3}, {0, 1, 2}, {{0, 4}});
  expect_proves(fabric, demand, whole, 2);
  const auto refused = [&](const char* word, auto change) {
    KnowledgeCertificate changed = whole;
    change(changed);
    expect_refused(fabric, demand, changed, word);
  };
  refused("GPU 4 does not exist", [](auto& c) { c.gpu = GpuId{4}; });
  refused("GPU -1 does not exist", [](auto& c) { c.gpu = GpuId{-1}; });
  refused("sources have to ascend", [](auto& c) { c.sources = gpus({2, 1}); });
  refused("sources have to ascend", [](auto& c) { c.sources = gpus({4}); });
  refused("sources have to ascend", [](auto& c) { c.sources = {}; });
  refused("nodes of a set", [](auto& c) { c.sets = {{}}; });
  refused("nodes of a set", [](auto& c) { c.sets = {{NodeId{5}}}; });
  refused("64 are the most", [](auto& c) { c.sets.assign(65, {NodeId{1}}); });
  refused("ascending from 0", [](auto& c) { c.times_us = {}; });
  refused("ascending from 0", [](auto& c) { c.times_us = {0}; });
  refused("ascending from 0", [](auto& c) { c.times_us = {0.5, 1}; });
  refused("ascending from 0", [](auto& c) { c.times_us = {0, 1, 1}; });
  refused("ascending from 0", [](auto& c) { c.times_us = {0, NAN}; });
  refused("ascending from 0", [](auto& c) { c.times_us = {0, INFINITY}; });
  refused("wants nothing", [](auto& c) { c.sources = gpus({0}); });
}

TEST(Knowledge, OfGpusThatOnlySendBehindASwitchOfALowerNumber) {
  // GPUs 0 and 1, nodes 1 and 2, send over the switch, node 0, to GPU 2; a message costs 1 us on each link.
  TopologyData data{.name = "sending", .nodes = std::vector<Node>(4)};
  data.nodes[0] = {.kind = NodeKind::switch_, .multicast = true, .forwarding = Forwarding::cut_through};
  for (const int n : {1, 2}) data.links.push_back({NodeId{n}, NodeId{0}, 1e6, 0, 1});
  data.links.push_back({NodeId{0}, NodeId{3}, 1e6, 0, 1});
  const Topology fabric(data);
  const Demand demand(Collective::custom, 2 * kUs, 3, {part(0, kUs, {2}), part(1, kUs, {2})}, 1);
  expect_tight(fabric, demand, knowledge(2, {1}, {0, 1}));
  expect_tight(fabric, demand, knowledge(2, {0, 1}, {0, 1, 2}));
}

TEST(AlikePlaces, AreThoseOfWhichAllIsAlike) {
  // GPU 0 is asked about, the others are sources; 4 is the switch.
  const Demand demand = make_demand(Collective::allgather, 4 * kUs, 4, 1);
  const auto first_places = [&](const Topology& fabric, const KnowledgeCertificate& certificate) {
    const certificates::KnowledgePlaces places(fabric, demand, certificate);
    const certificates::AlikePlaces alike(fabric, places);
    std::vector<std::size_t> first;
    for (std::size_t place = 0; place < 4; ++place) first.push_back(alike.first_place(place));
    return first;
  };
  const KnowledgeCertificate of_all = knowledge(0, {1, 2, 3}, {0, 1, 2});
  EXPECT_EQ(first_places(costly_star(), of_all), (std::vector<std::size_t>{0, 1, 1, 1}));
  // What GPU 3 has does not count, nor GPU 0's own.
  EXPECT_EQ(first_places(costly_star(), knowledge(0, {1, 2}, {0, 1, 2})),
            (std::vector<std::size_t>{0, 1, 1, 0}));
  // A set tells those in it from the others.
  EXPECT_EQ(first_places(costly_star(), knowledge(0, {1, 2, 3}, {0, 1, 2}, {{1, 2}})),
            (std::vector<std::size_t>{0, 1, 1, 3}));
  // As does a link into one that is slower.
  Fabric slower(4);
  const int sw = slower.cut_through(true, false);
  for (int g = 0; g < 4; ++g) slower.link(g, sw, 1e6, 0, 1);
  for (int g = 0; g < 4; ++g) slower.link(sw, g, g == 2 ? 5e5 : 1e6, 0, 1);
  EXPECT_EQ(first_places(slower.build(), of_all), (std::vector<std::size_t>{0, 1, 2, 1}));
}

}  // namespace
}  // namespace rondo::test_knowledge
