#include <algorithm>

#include "certificates.hpp"
#include "rondo/bounds/joint_cuts.hpp"
#include "rondo/core/random.hpp"
#include "rondo/core/subfabric.hpp"
#include "rondo/core/transposition.hpp"
#include "rondo/solvers/solvers.hpp"

/// A datum from GPU 0 to GPUs 1 and 2 around a switch that does not copy. What leaves GPU 0 more than four
/// latencies before the end can be passed on, the rest has to be sent twice; two latencies before the end
/// nothing leaves in time. So bytes that take b us end after b + 3 latencies at the earliest, and so early if
/// the others are split so.
namespace rondo::test_joint_cuts {
namespace {

/// Links 0 to 2 lead to the switch, node 3, links 3 to 5 from it.
Topology star(double GBps = 1, double latency_us = 1, bool multicast = false, bool reduce = false) {
  Fabric fabric(3);
  const int center = fabric.cut_through(multicast, reduce);
  for (int g = 0; g < 3; ++g) fabric.link(g, center, GBps, latency_us);
  for (int g = 0; g < 3; ++g) fabric.link(center, g, GBps, latency_us);
  return fabric.build();
}

Demand spread(const Topology& topology, double us = 10) {
  return custom(topology, {part(0, us * kUs, {1, 2})});
}

JointCutsCertificate both_cuts(double until_us, double latency_us = 1) {
  const double passed_on_us = until_us - 2 * latency_us;
  return {
      .prices = {.from_us = {0, until_us - 4 * latency_us, passed_on_us},
                 .until_us = until_us,
                 .place = {0, 6},
                 .price = {2, 1}},
      .cuts = {{GpuId{1}, 1, {0, until_us, passed_on_us, 0}}, {GpuId{2}, 1, {0, passed_on_us, until_us, 0}}}};
}

std::optional<LowerBound> found_cuts(const Topology& topology, const Demand& demand, double least_us) {
  return find_joint_cuts(topology, demand, find_symmetry(topology, demand), *make_clp_solver(), least_us);
}

TEST(JointCuts, ProveWhenCutsNeedMoreThanLinksCanEarn) {
  const Topology topology = star();
  EXPECT_EQ(sound_bound_of(topology, spread(topology), both_cuts(12.99)), 12.99);
  expect_refused(topology, spread(topology), both_cuts(13.01), "have to pay");
  expect_refused(topology, spread(topology, 9.9), both_cuts(12.99), "have to pay");
  // Sums backwards: from GPUs 1 and 2 to GPU 0.
  const Demand sum = custom(topology, {sum_of({0, 1, 2}, 10 * kUs, {0})});
  JointCutsCertificate backwards = both_cuts(12.99);
  backwards.backwards = true;
  for (std::int32_t& place : backwards.prices.place) place += 3;
  EXPECT_EQ(sound_bound_of(topology, sum, backwards), 12.99);
  EXPECT_EQ(std::get<JointCutsCertificate>(transposed(Certificate(backwards))).backwards, false);
  expect_refused(star(1, 1, false, true), sum, backwards, "pays 0");
  expect_refused(topology, spread(topology), backwards, "one destination each");
}

TEST(JointCuts, AreRefusedWhereTheyAreNone) {
  const Topology topology = star();
  const auto refuse = [&](const auto& change, const std::string& word) {
    JointCutsCertificate joint = both_cuts(12.99);
    change(joint);
    expect_refused(topology, spread(topology), joint, word);
  };
  refuse([](auto& j) { j.prices.from_us[1] = 13; }, "periods begin");
  refuse([](auto& j) { j.prices.price.pop_back(); }, "1 prices for 2 places");
  refuse([](auto& j) { j.prices.price[0] = 1.9; }, "pays 1.9");
  refuse([](auto& j) { j.prices.from_us[1] -= 0.1; }, "pays 1 on its way from node 0");
  refuse([](auto& j) { j.prices.from_us[2] -= 0.1; }, "pays 0 on its way from node 0");
  refuse([](auto& j) { j.cuts[0].alpha_us[2] += 0.1; }, "on its way from node");
  refuse([](auto& j) { j.cuts[0].alpha_us[1] = 12; }, "it has to be closed until 12.99");
  refuse([](auto& j) { j.cuts[0].alpha_us[0] = 0.1; }, "have to pay");
  refuse([](auto& j) { j.cuts[0].alpha_us.pop_back(); }, "3 times; the fabric has 4 nodes");
  refuse([](auto& j) { j.cuts[0].alpha_us[3] = -1; }, "node 3 opens at -1 us");
  refuse([](auto& j) { j.cuts[0].weight = -1; }, "weighs -1");
  refuse([](auto& j) { j.cuts[0].weight = NAN; }, "weighs nan");
  refuse([](auto& j) { j.cuts[0].gpu = GpuId{3}; }, "GPU 3 does not exist");
  refuse([](auto& j) { j.cuts.clear(); }, "have to pay 0");
  // Where the switch copies, one byte may serve both.
  expect_refused(star(1, 1, true), spread(topology), both_cuts(12.99), "pays 0 on its way from node 3");
  Fabric changing(3);
  const int center = changing.cut_through(false);
  for (int g = 0; g < 3; ++g) changing.changing_link(g, center, {{0, 1}, {50, 2}}, 1);
  for (int g = 0; g < 3; ++g) changing.link(center, g, 1, 1);
  expect_refused(changing.build(), spread(topology), both_cuts(12.99), "bandwidth changes");
}

// A message cost of 2 us where the transfer begins: what is passed on leaves GPU 1 as much later.
TEST(JointCuts, KnowMessageCostsAndSwitchesThatKeep) {
  Fabric costly(3);
  const int center = costly.cut_through(false);
  for (int g = 0; g < 3; ++g) costly.link(g, center, 1, 1, 2);
  for (int g = 0; g < 3; ++g) costly.link(center, g, 1, 1);
  const Topology topology = costly.build();
  // GPU 1 is open for GPU 2 from T - 4 on; link 0 pays twice in [2, T - 6), once until T - 2: 2 T - 12 < 20.
  JointCutsCertificate joint = both_cuts(15.99);
  joint.prices.from_us = {0, 2, 9.99, 13.99};
  joint.prices.place = {6, 12};
  joint.cuts[0].alpha_us[2] = joint.cuts[1].alpha_us[1] = 11.99;
  EXPECT_EQ(sound_bound_of(topology, spread(topology), joint), 15.99);
  // Without the cost what starts before 2 us would be free.
  expect_refused(star(), spread(topology), joint, "pays 0 on its way from node 0");

  Fabric keeping(3);
  const int store = keeping.store_and_forward(0, false);
  for (int g = 0; g < 3; ++g) keeping.link(g, store, 1, 1);
  for (int g = 0; g < 3; ++g) keeping.link(store, g, 1, 1);
  EXPECT_EQ(sound_bound_of(keeping.build(), spread(topology), both_cuts(12.99)), 12.99);
  // What is passed on later than the first of it: from GPU 1 on, open from 2 us on, to GPU 2.
  JointCutsCertificate apart = both_cuts(12.99);
  apart.cuts[0].alpha_us[2] = apart.cuts[1].alpha_us[1] = 2;
  apart.prices.from_us[1] = 1;
  apart.prices.price = {2, 2};
  expect_refused(keeping.build(), spread(topology), apart, "pays 0 on its way from node 1");
  expect_refused(star(), spread(topology), apart, "pays 0 on its way from node 1");
}

TEST(JointCuts, OfAGroupWithoutRelaysAreThoseOfItsPart) {
  Fabric fabric(4);
  const int center = fabric.cut_through(false);
  for (int g = 0; g < 4; ++g) fabric.link(g, center, 1, 1);
  for (int g = 0; g < 4; ++g) fabric.link(center, g, 1, 1);
  const Topology topology = fabric.build();
  const Demand demand(Collective::custom, 10 * kUs, 4, {part(0, 10 * kUs, {1, 3})}, 1,
                      {.group = gpus({0, 1, 3}), .counts = {}, .relays = false});
  JointCutsCertificate whole = both_cuts(12.99);
  whole.prices.place = {0, 8};
  whole.cuts[1].gpu = GpuId{3};
  whole.cuts[0].alpha_us = {0, 12.99, 0, 10.99, 0};
  whole.cuts[1].alpha_us = {0, 10.99, 0, 12.99, 0};
  EXPECT_EQ(sound_bound_of(topology, demand, whole), 12.99);
  const Subfabric inside(topology, demand);
  const auto there = std::get<JointCutsCertificate>(inside.certificate_inside(whole));
  EXPECT_EQ(there.cuts, both_cuts(12.99).cuts);
  EXPECT_EQ(there.prices.place, (std::vector<std::int32_t>{0, 6}));
  EXPECT_EQ(std::get<JointCutsCertificate>(inside.certificate_of_whole(there)).cuts, whole.cuts);
}

TEST(JointCuts, AreFoundNearlyToTheLastDigit) {
  const Topology topology = star();
  const auto found = found_cuts(topology, spread(topology), 12);
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->us, 13, 1e-4);
  EXPECT_LT(found->us, 13);
  EXPECT_EQ(sound_bound_of(topology, spread(topology), found->certificate), found->us);
  EXPECT_FALSE(found_cuts(topology, spread(topology), 13));
  EXPECT_FALSE(found_cuts(star(1, 1, true), spread(topology), 1));
  // From all to all: 20 us into each GPU, and 2 us on the way.
  const Demand all = make_demand(Collective::allgather, 30 * kUs, 3, 1);
  const auto of_all = found_cuts(topology, all, 20);
  ASSERT_TRUE(of_all);
  EXPECT_NEAR(of_all->us, 22, 1e-3);
}

JointCutsCertificate mutated(JointCutsCertificate joint, Random& random) {
  const auto some = [&](auto& all) -> auto& {
    return all[random.below(all.size())];
  };
  const double by = random.unit() < 0.5 ? 0.5 : 0.01;
  switch (random.below(8)) {
    case 0:
      joint.prices.until_us *= 1 + by;
      break;
    case 1:
      joint.prices.until_us *= 1 - 0.1 * by;
      break;
    case 2:
      some(joint.prices.from_us) += random.unit() < 0.5 ? by : -by;
      break;
    case 3:
      some(joint.prices.price) *= random.unit() < 0.5 ? 0 : 2;
      break;
    case 4:
      some(joint.prices.place) += random.unit() < 0.5 ? 1 : -1;
      break;
    case 5:
      some(joint.cuts).weight *= random.unit() < 0.5 ? 1 - by : 1 + by;
      break;
    case 6:
      some(some(joint.cuts).alpha_us) += by;
      break;
    default: {
      double& us = some(some(joint.cuts).alpha_us);
      us = std::max(0.0, us - by);
    }
  }
  return joint;
}

TEST(JointCutsMutations, ProveNoMoreThanTheEarliestEnd) {
  Random random(7);
  int accepted = 0;
  int refused = 0;
  constexpr int kCases = 20;
  for (int i = 0; i < kCases; ++i) {
    const double latency_us = 0.2 + 2 * random.unit();
    const double GBps = 0.5 + 2 * random.unit();
    const double us = latency_us * (1.1 + 10 * random.unit());
    const Topology topology = star(GBps, latency_us);
    const Demand demand = spread(topology, us * GBps);
    const double earliest_us = us + 3 * latency_us;
    const auto found = found_cuts(topology, demand, us);
    ASSERT_TRUE(found) << i;
    EXPECT_LE(found->us, earliest_us) << i;
    EXPECT_GE(found->us, earliest_us * (1 - 1e-3)) << i;
    for (int k = 0; k < 1000 / kCases; ++k) {
      try {
        const double proven_us = sound_bound_of(
            topology, demand, mutated(std::get<JointCutsCertificate>(found->certificate), random));
        ASSERT_LE(proven_us, earliest_us) << i;
        ++accepted;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::bad_data);
        ++refused;
      }
    }
  }
  EXPECT_EQ(accepted + refused, 1000);
  EXPECT_GT(accepted, 50);
  EXPECT_GT(refused, 300);
}

}  // namespace
}  // namespace rondo::test_joint_cuts
