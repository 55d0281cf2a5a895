// Several tenants on one fabric, and sums whose parts come late.

#include <gtest/gtest.h>

#include <algorithm>
#include <span>

#include "expect_error.hpp"
#include "rondo/core/late_sums.hpp"
#include "rondo/core/relay_memory.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/core/verify.hpp"
#include "rondo/pipeline/bound.hpp"
#include "rondo/pipeline/synthesize.hpp"
#include "tenant_orders.hpp"
#include "topologies.hpp"

namespace rondo::test_sharing {
namespace {

using Fabric = std::shared_ptr<const Topology>;

SynthesisResult solve(const Fabric& topology, const Demand& demand, SolveOptions options = {}) {
  if (options.improve_work == SolveOptions{}.improve_work) options.improve_work = 1e5;
  SynthesisResult result = synthesize({topology, demand, options}, {*make_local_communicator()});
  verify(result.proven);
  return result;
}

struct Wish {
  std::string collective;
  double bytes;
  double priority = 1;
  double start_us = 0;
};

Demand shared(const Fabric& topology, const std::vector<Wish>& wishes) {
  std::vector<Contribution> all;
  double bytes = 0;
  for (const Wish& wish : wishes) {
    const int tenant = all.empty() ? 0 : all.back().tenant + 1;
    const Demand named = make_demand(parse_collective(wish.collective), wish.bytes, topology->num_gpus(), 1);
    for (Contribution c : named.contributions()) {
      c.tenant = tenant;
      c.priority = wish.priority;
      c.ready_us = wish.start_us;
      bytes += c.bytes;
      all.push_back(std::move(c));
    }
  }
  return Demand(Collective::custom, bytes, topology->num_gpus(), std::move(all), 1);
}

// What needs a way through switches at once waits for ever while smaller transfers take its links in turn.
// Served first and kept as it is, the one that counts ten times ends as if it were alone, and the other right
// behind.
TEST(Sharing, IsNoWorseThanOneBehindAnother) {
  const Fabric tree = generated("fat_tree", {{"leaves", "4"}, {"gpus", "2"}});
  const Demand demand = shared(tree, {{"allgather", 24e6}, {"alltoall", 6e6, 10}});
  SolveOptions options;
  options.objective = Objective::weighted;
  options.engine = "list";
  options.chunks = 2;
  options.gap = 9;
  options.improve_work = 0;
  const SynthesisResult result = solve(tree, demand, options);
  const auto& tenants = result.sharing->tenants;
  const double serve_us = tenants[1].alone_us;
  EXPECT_LE(result.sharing->weighted_us, (10 * serve_us + serve_us + tenants[0].alone_us) * (1 + 1e-9));
}

// Over one link the first tenant sends 1 MB from 1000 us on, when it is ready: 1000 us and 1 us of latency.
// What the second has is inserted before that where it takes no more than 1000 us, else after it; behind, in
// any case after.
TEST(Sharing, TenantsAreInsertedOrBehind) {
  const Fabric pair = fabric(std::vector<Node>(2), {link(0, 1)});
  for (const double megabytes : {1.0, 1.5}) {
    Contribution first{.origin = GpuId{0}, .bytes = kMB, .destinations = {GpuId{1}}, .ready_us = 1000};
    Contribution second{.origin = GpuId{0}, .bytes = megabytes * kMB, .destinations = {GpuId{1}}};
    second.tenant = 1;
    const Demand demand(Collective::custom, first.bytes + second.bytes, 2, {first, second}, 1);
    const double took_us = 1000 * megabytes;
    const std::vector<Send> alone{Send{ChunkId{0}, LinkId{0}, 1000, 2000, 2001},
                                  Send{ChunkId{1}, LinkId{0}, 0, took_us, took_us + 1}};
    const Schedule inside = inserted(*pair, demand, alone, {0, 1}, kDefaultConcurrency);
    const auto start_us = [](std::span<const Send> sends, int chunk) {
      return std::ranges::find(sends, ChunkId{chunk}, &Send::chunk)->start_us;
    };
    EXPECT_NEAR(start_us(inside.sends, 0), 1000, 1e-6);
    EXPECT_NEAR(start_us(inside.sends, 1), megabytes == 1 ? 0 : 2000, 1e-6);
    const TenantOrder order{"behind", {{.place = 0}, {.place = 1}}, TenantPlacing::behind};
    const std::vector<Send> behind = one_behind_another(*pair, order, alone, {0, 1});
    EXPECT_NEAR(start_us(behind, 0), 1000, 1e-6);
    EXPECT_NEAR(start_us(behind, 1), 2000, 1e-6);
    EXPECT_TRUE(replay(*pair, demand, inside.sends).valid());
    EXPECT_TRUE(replay(*pair, demand, behind).valid());
  }
}

// Each 1 MB alone over the first of two switches. One waits for the other; over the second switch it does
// not.
TEST(Sharing, TenantsTakeOtherPaths) {
  std::vector<Node> nodes(4);
  nodes[2].kind = nodes[3].kind = NodeKind::switch_;
  const Fabric two_ways = fabric(nodes, {link(0, 2), link(2, 1), link(0, 3), link(3, 1)});
  Contribution first{.origin = GpuId{0}, .bytes = kMB, .destinations = {GpuId{1}}};
  Contribution second = first;
  second.tenant = 1;
  const Demand demand(Collective::custom, 2 * kMB, 2, {first, second}, 1);
  const std::vector<Send> alone{
      Send{ChunkId{0}, LinkId{0}, 0, 1000, 1001}, Send{ChunkId{0}, LinkId{1}, 1, 1001, 1002},
      Send{ChunkId{1}, LinkId{0}, 0, 1000, 1001}, Send{ChunkId{1}, LinkId{1}, 1, 1001, 1002}};
  for (const bool rerouted : {false, true}) {
    const Schedule both = inserted(*two_ways, demand, alone, {0, 0, 1, 1}, kDefaultConcurrency, rerouted);
    const ReplayResult replayed = replay(*two_ways, demand, both.sends);
    ASSERT_TRUE(replayed.valid()) << *replayed.violation;
    EXPECT_NEAR(replayed.finish_us, rerouted ? 1002 : 2002, 1e-6);
  }
}

TEST(Sharing, EndsNoLaterThanOneAfterTheOtherOrBlindly) {
  const Fabric torus = generated("torus", {{"dims", "3x3"}});
  const SynthesisResult result =
      solve(torus, shared(torus, {{"allgather", 9e6}, {"alltoall", 9e6}, {"reduce_scatter", 9e6}}));
  ASSERT_TRUE(result.sharing);
  EXPECT_EQ(result.sharing->tenants.size(), 3u);
  const double finish_us = result.proven.schedule.finish_us;
  EXPECT_LE(finish_us, result.metrics.at("one_after_the_other_finish_us") * (1 + 1e-9));
  EXPECT_LE(finish_us, result.metrics.at("blind_sharing_finish_us") * (1 + 1e-9));
  EXPECT_LE(result.sharing->weighted_bound_us, result.sharing->weighted_us);
  for (const TenantOutcome& tenant : result.sharing->tenants) {
    EXPECT_LE(tenant.tenant.start_us + tenant.lower_bound.us, tenant.finish_us);
    EXPECT_GE(tenant.slowdown(), 1 - 1e-9);
  }
  // Of the whole, not of a part.
  for (const TenantOutcome& tenant : result.sharing->tenants)
    EXPECT_GT(result.proven.lower_bound->us, 1.2 * tenant.lower_bound.us);
}

// Two alike: who counts ten times as much ends first, within a little of alone.
TEST(Sharing, PriorityDecidesWhoWaits) {
  const Fabric ring = generated("ring", {{"gpus", "4"}});
  SolveOptions options;
  options.objective = Objective::weighted;
  for (const std::size_t first : {0u, 1u}) {
    std::vector<Wish> wishes(2, {"allgather", 8e6});
    wishes[first].priority = 10;
    const SynthesisResult result = solve(ring, shared(ring, wishes), options);
    const auto& tenants = result.sharing->tenants;
    EXPECT_LT(tenants[first].finish_us, 0.6 * tenants[1 - first].finish_us);
    EXPECT_LE(tenants[first].slowdown(), 1.05);
    EXPECT_LE(result.sharing->weighted_us, 1.05 * result.sharing->weighted_bound_us);
  }
}

TEST(Sharing, ATenantBeginsAtItsStart) {
  const Fabric ring = generated("ring", {{"gpus", "4"}});
  const SynthesisResult result = solve(ring, shared(ring, {{"allgather", 4e6}, {"allreduce", 4e6, 1, 1000}}));
  EXPECT_GT(result.sharing->tenants[1].finish_us, 1000);
  EXPECT_NEAR(result.sharing->tenants[0].slowdown(), 1, 0.01);
  for (const Send& send : result.proven.schedule.sends) {
    const bool begins_late = result.proven.demand.contribution(send.chunk).tenant == 1;
    EXPECT_GE(send.start_us, begins_late ? 1000 : 0);
  }
}

TEST(Sharing, IsRefusedByWhatIsForOneCollective) {
  const Fabric ring = generated("ring", {{"gpus", "4"}});
  const Demand two = shared(ring, {{"allgather", 4e6}, {"alltoall", 4e6}});
  for (const std::string engine : {"rounds", "steps"}) {
    SolveOptions options;
    options.engine = engine;
    expect_error(ExitCode::unavailable, {"several tenants", engine}, [&] {
      check_options({ring, two, options});
    });
  }
}

TEST(EarlyDelivery, IsRefusedByWhatDoesNotHeedIt) {
  const Fabric ring = generated("ring", {{"gpus", "4"}});
  SolveOptions options;
  options.objective = Objective::early;
  const Demand data = make_demand(Collective::allgather, 4e6, 4, 1);
  const auto refused = [&](const std::string& engine, const Demand& demand, const std::string& why) {
    options.engine = engine;
    expect_error(ExitCode::unavailable, {why, "--objective early"}, [&] {
      check_options({ring, demand, options});
    });
  };
  for (const std::string engine : {"auto", "list", "rounds"}) refused(engine, data, "engine " + engine);
  refused("milp", make_demand(Collective::reduce_scatter, 4e6, 4, 1), "backwards");
  refused("milp", shared(ring, {{"allgather", 4e6}, {"alltoall", 4e6}}), "several tenants");
  EXPECT_NO_THROW(check_options({ring, data, options}));
}

TEST(RelayMemory, IsNotForEngineRounds) {
  const Fabric ring = generated("ring", {{"gpus", "4"}});
  Problem problem{std::make_shared<const Topology>(with_relay_memory(*ring, 1e6)),
                  make_demand(Collective::alltoall, 4e6, 4, 1, GpuId{0}, {.group = {GpuId{0}, GpuId{2}}}),
                  {}};
  problem.options.engine = "rounds";
  expect_error(ExitCode::unavailable, {"engine rounds", "buffer_bytes"}, [&] { check_options(problem); });
  problem.options.engine = "milp";
  EXPECT_NO_THROW(check_options(problem));
}

/// `collective` with GPU 1 late.
Demand late(const Fabric& topology, Collective collective, double bytes, double late_us) {
  const Demand named = make_demand(collective, bytes, topology->num_gpus(), 1);
  std::vector<Contribution> parts = named.contributions();
  double sum = 0;
  for (Contribution& part : parts) {
    sum += part.bytes;
    for (const GpuId source : part.all_sources())
      part.source_ready_us.push_back(source == GpuId{1} ? late_us : 0);
  }
  return Demand(Collective::custom, sum, topology->num_gpus(), std::move(parts), 1);
}

// Engine exchange is far from its bound here, and what it makes is only done later where its order does not
// fit late parts.
TEST(LateSums, AreBoundedWithTheirReadyTimes) {
  const Fabric rails = generated("rails", {{"boxes", "2"}, {"gpus", "2"}});
  for (const std::string engine : {"auto", "exchange"}) {
    const Collective collective = engine == "auto" ? Collective::reduce_scatter : Collective::allreduce;
    SolveOptions options;
    options.improve_work = 1e3;
    options.chunks = 4;
    options.engine = engine;
    const SynthesisResult without = solve(rails, late(rails, collective, 4e6, 0), options);
    for (const double late_us : {1.0, 1000.0}) {
      const SynthesisResult result = solve(rails, late(rails, collective, 4e6, late_us), options);
      const double latest_us = late_us + without.proven.schedule.finish_us;
      EXPECT_LE(result.proven.schedule.finish_us, latest_us * (1 + 1e-9));
      EXPECT_GT(result.proven.lower_bound->us, late_us);
      EXPECT_LE(result.gap, without.gap + 0.1) << engine << late_us;
    }
  }
}

TEST(LateSums, OfAllEnginesEndNearTheirBound) {
  const Fabric rails = generated("rails", {{"boxes", "2"}, {"gpus", "2"}});
  SolveOptions options;
  options.chunks = 4;
  EXPECT_LE(solve(rails, late(rails, Collective::allreduce, 4e6, 1000), options).gap, 0.03);
}

// What the others have is at the late GPU by then: no half has to follow its part but one.
TEST(LateSums, AreAddedUpAtTheLatestGpu) {
  const Fabric rails = generated("rails", {{"boxes", "2"}, {"gpus", "2"}});
  SolveOptions options;
  options.improve_work = 0;
  options.chunks = 64;
  const SynthesisResult result = solve(rails, late(rails, Collective::allreduce, 4e6, 100), options);
  EXPECT_EQ(result.engine.substr(0, 7), "latest/") << result.engine;
  EXPECT_LE(result.gap, 0.01);
}

}  // namespace
}  // namespace rondo::test_sharing
