#include <gtest/gtest.h>

#include "by_hand.hpp"
#include "expect_error.hpp"
#include "rondo/core/interleaving.hpp"
#include "rondo/core/tenants.hpp"
#include "sum_schedules.hpp"
#include "topologies.hpp"

namespace rondo::test_tenants {
namespace {

Contribution of_tenant(Contribution part, int tenant, double priority = 1) {
  part.tenant = tenant;
  part.priority = priority;
  return part;
}

/// 0 -> 1 -> 2.
Topology line_of_three() {
  Fabric fabric(3);
  fabric.link(0, 1);
  fabric.link(1, 2);
  return fabric.build();
}

/// Per tenant; the replay accepts the schedule.
std::vector<double> finishes_of(const Topology& topology, const Demand& demand, const Schedule& schedule) {
  const ReplayResult result = replay(topology, demand, schedule.sends);
  EXPECT_TRUE(result.valid()) << result.violation.value_or("");
  return tenant_finishes_us(demand, result.contribution_finish_us);
}

// Both want 0 -> 1 at once; who has the lesser key goes first.
TEST(Interleaving, LetsTheLeastKeyGoFirst) {
  Fabric fabric(2);
  fabric.link(0, 1);
  const Topology topology = fabric.build();
  const Demand demand =
      custom(topology, {of_tenant(part(0, kUs, {1}), 0), of_tenant(part(0, 2 * kUs, {1}), 1)});
  const std::vector<Send> sends = {send(0, 0, 0, 1, 1), send(1, 0, 0, 2, 2)};
  const auto finishes = [&](const std::vector<double>& keys) {
    return finishes_of(topology, demand, interleaved({topology, sends}, topology, demand, keys));
  };
  EXPECT_EQ(finishes({0, 1}), (std::vector<double>{1, 3}));
  EXPECT_EQ(finishes({1, 0}), (std::vector<double>{3, 2}));
}

// What has to wait for its data leaves the link to others, though they come behind it.
TEST(Interleaving, FillsWhatOthersLeaveFree) {
  const Topology topology = line_of_three();
  const Demand demand =
      custom(topology, {of_tenant(part(0, 2 * kUs, {2}), 0), of_tenant(part(1, kUs, {2}), 1),
                        of_tenant(part(1, kUs, {2}, 5), 2)});
  const std::vector<Send> sends = {send(0, 0, 0, 2, 2), send(0, 1, 2, 4, 4), send(1, 1, 0, 1, 1),
                                   send(2, 1, 5, 6, 6)};
  const Schedule shared = interleaved({topology, sends}, topology, demand, std::vector<double>{0, 0, 9, 9});
  EXPECT_EQ(finishes_of(topology, demand, shared), (std::vector<double>{4, 1, 6}));
}

TEST(Interleaving, KeepsSumsOfTwoTenantsApart) {
  const auto ring = one_way_ring(4);
  const Demand one = make_demand(Collective::allreduce, 4000, 4, 4);
  const ProvenSchedule textbook = in_rounds(*ring, one, ring_sums(4, 1, true));
  std::vector<Contribution> both;
  std::vector<Send> sends;
  std::vector<double> keys;
  for (int tenant = 0; tenant < 2; ++tenant) {
    const auto first = static_cast<int>(both.size());
    for (std::size_t c = 0; c < one.num_chunks(); ++c) {
      both.push_back(of_tenant(one.contribution(ChunkId(c)), tenant));
      both.back().bytes = one.bytes(ChunkId(c));
    }
    for (Send send : textbook.schedule.sends) {
      send.chunk = ChunkId{send.chunk.value + first};
      sends.push_back(send);
      keys.push_back(tenant == 0 ? 100 + send.start_us : send.start_us);
    }
  }
  const Demand demand(Collective::custom, 8000, 4, both, 1);
  const auto finishes = finishes_of(*ring, demand, interleaved({*ring, sends}, *ring, demand, keys));
  EXPECT_LT(finishes[1], finishes[0]);
  EXPECT_LE(finishes[0], 2 * textbook.schedule.finish_us);
}

TEST(Tenants, HaveDemandsOfTheirOwnFromTheirStartOn) {
  const Topology topology = line_of_three();
  const Demand demand =
      custom(topology, {of_tenant(part(0, kUs, {2}, 7), 4, 2), of_tenant(part(1, kUs, {2}), 1),
                        of_tenant(part(1, 3 * kUs, {2}, 9), 4, 2)});
  const std::vector<Tenant> tenants = tenants_of(demand);
  ASSERT_EQ(tenants.size(), 2u);
  EXPECT_EQ(tenants[1].number, 4);
  EXPECT_EQ(tenants[1].priority, 2);
  EXPECT_EQ(tenants[1].start_us, 7);
  const Demand own = demand_of_tenant(demand, tenants[1]);
  EXPECT_EQ(own.size_bytes(), 4 * kUs);
  EXPECT_EQ(own.contributions()[1].ready_us, 2);
  EXPECT_EQ(tenants_of(own).front().number, 0);
}

TEST(Tenants, HaveOnePriorityEach) {
  Fabric fabric(2);
  fabric.link(0, 1);
  const Topology topology = fabric.build();
  const auto refused = [&](const std::vector<Contribution>& parts, const std::vector<std::string>& why) {
    expect_error(ExitCode::bad_data, why, [&] { custom(topology, parts); });
  };
  refused({of_tenant(part(0, kUs, {1}), 1, 2), of_tenant(part(0, kUs, {1}), 1, 3)}, {"tenant 1", "2", "3"});
  refused({of_tenant(part(0, kUs, {1}), 1, 0)}, {"priority is 0", "positive"});
  refused({of_tenant(part(0, kUs, {1}), -1)}, {"tenant is -1"});
}

// 1 us and 2 us over one cut. Equal: the short one first, 1 + 3. At 5 to 1: the long one first, 5 x 2 + 3.
TEST(Tenants, HaveABoundOfTheirWeightedSum) {
  EXPECT_EQ(weighted_bound(std::vector<WeighedTenant>{{1, 1, {1}}, {1, 2, {2}}}).us, 4);
  EXPECT_EQ(weighted_bound(std::vector<WeighedTenant>{{1, 1, {1}}, {5, 2, {2}}}).us, 13);
  // Alone each takes longer than its part of the cut.
  EXPECT_EQ(weighted_bound(std::vector<WeighedTenant>{{1, 10, {1}}, {1, 20, {2}}}).us, 30);
  EXPECT_EQ(weighted_bound(std::vector<WeighedTenant>{{1, 10}, {1, 20}}).us, 30);
  // Beyond twelve by Smith's rule: 1 + 2 + ... + 13.
  EXPECT_EQ(weighted_bound(std::vector<WeighedTenant>(13, {1, 1, {1}})).us, 91);
}

// Three, each two of which meet at one of three cuts, 4 us each: only one can end after 4 us. One cut alone,
// of the first two, proves 4 + 8 + 4.
TEST(Tenants, MeetAtSeveralCuts) {
  const std::vector<WeighedTenant> tenants{{1, 4, {4, 4, 0}}, {1, 4, {4, 0, 4}}, {1, 4, {0, 4, 4}}};
  EXPECT_EQ(weighted_bound(tenants).us, 4 + 8 + 8);
  std::vector<WeighedTenant> at_one = tenants;
  for (WeighedTenant& tenant : at_one) tenant.crossing_us.resize(1);
  EXPECT_EQ(weighted_bound(at_one).us, 4 + 4 + 8);
  // The one that counts most is the first.
  std::vector<WeighedTenant> weighed = tenants;
  weighed[1].priority = 3;
  EXPECT_EQ(weighted_bound(weighed).us, 3 * 4 + 8 + 8);
  EXPECT_EQ(weighted_bound(weighed).order.front(), 1u);
}

TEST(Tenants, NeedTheirBytesToCross) {
  Fabric fabric(3);
  fabric.link(0, 1, 2);
  fabric.link(1, 2);
  const Topology topology = fabric.build();
  const Demand demand =
      custom(topology, {of_tenant(part(0, kUs, {1, 2}), 0), of_tenant(part(1, kUs, {2}), 1)});
  EXPECT_EQ(crossing_times_us(topology, demand, std::vector{NodeId{0}}), (std::vector<double>{0.5, 0}));
  EXPECT_EQ(crossing_times_us(topology, demand, std::vector{NodeId{0}, NodeId{1}}),
            (std::vector<double>{1, 1}));
  expect_error(ExitCode::bad_data, {"node 9"},
               [&] { crossing_times_us(topology, demand, std::vector{NodeId{9}}); });
}

}  // namespace
}  // namespace rondo::test_tenants
