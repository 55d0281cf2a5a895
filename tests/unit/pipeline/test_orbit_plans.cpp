#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "rondo/core/hops.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/engines/engines.hpp"
#include "rondo/local_search/improvement.hpp"
#include "rondo/local_search/justification.hpp"
#include "rondo/local_search/orbit_plans.hpp"
#include "rondo/pipeline/synthesize.hpp"
#include "same_sends.hpp"
#include "topologies.hpp"

namespace rondo::test_orbit_plans {
namespace {

using Fabric = std::shared_ptr<const Topology>;

Demand allgather(const Topology& topology, int chunks) {
  return make_demand(Collective::allgather, 1e6, topology.num_gpus(), chunks);
}

OrbitPlans plans_of(const Topology& topology) {
  const Demand demand = allgather(topology, 1);
  return {topology, demand, find_free_group(topology, demand_pattern(demand)), kAnyConcurrency};
}

Schedule listed(const Fabric& topology, const Demand& demand) {
  return *prepare_list({topology, demand}, {}, {})(demand, {}).schedule;
}

/// What folding leaves of a schedule, as a plan.
TransferPlan placed(const OrbitPlans& plans, const Schedule& schedule, int chunks) {
  const std::optional<PlannedOrder> order = plans.folded(schedule, chunks);
  EXPECT_TRUE(order && order->waits);
  return placed_forward(order->plan, with_chunks(plans.space(), chunks), starts_of(order->plan));
}

/// Every GPU of the torus does what the first one does.
TEST(OrbitPlans, UnfoldToSchedulesThatTheReplayAccepts) {
  const Fabric torus = generated("torus", {{"dims", "4x4"}});
  const OrbitPlans plans = plans_of(*torus);
  ASSERT_EQ(plans.num_automorphisms(), 16U);
  ASSERT_EQ(plans.space().demand.contributions().size(), 1U);
  const Demand demand = allgather(*torus, 3);
  const TransferPlan plan = placed(plans, listed(torus, demand), 3);
  EXPECT_EQ(plan.transfers.size() * 16, demand.num_deliveries());
  const Schedule whole = plans.unfolded(plan, 3);
  const ReplayResult replayed = replay(*torus, demand, whole.sends);
  ASSERT_TRUE(replayed.valid()) << *replayed.violation;
  EXPECT_DOUBLE_EQ(replayed.finish_us, whole.finish_us);
  EXPECT_NEAR(plan.quality.finish_us, whole.finish_us, 1e-6);
  // Of a symmetric schedule nothing is lost.
  const Schedule again = plans.unfolded(placed(plans, whole, 3), 3);
  EXPECT_LE(again.finish_us, whole.finish_us);
  EXPECT_EQ(again.sends.size(), whole.sends.size());
}

TEST(OrbitPlans, AreBusyOnOneLinkOfEachOrbit) {
  const Fabric torus = generated("torus", {{"dims", "4x4"}});
  const OrbitPlans plans = plans_of(*torus);
  std::set<LinkId> links;
  for (const Hop& hop : plans.space().hops) {
    for (const HopLink& part : hop.links) links.insert(part.link);
  }
  EXPECT_EQ(links.size(), 4U);  // of 64: up, down, left and right
}

/// To the other GPUs of a star at once: their links are images of one another, which would be busy together.
TEST(OrbitPlans, AreNotFoldedWhereSwitchesCopy) {
  const Fabric fabric = star(4);
  const Demand demand = allgather(*fabric, 1);
  Schedule copied;
  for (int from = 0; from < 4; ++from) {
    std::vector<Send> sends;
    for (int to = 0; to < 4; ++to) {
      if (to == from) continue;
      const Hop hop = make_hop(*fabric, std::vector{LinkId{from}, LinkId{4 + to}});
      const double bytes = demand.bytes(ChunkId{from});
      append_sends(*fabric, hop, ChunkId{from}, bytes, from * hop.duration_us(bytes), sends);
    }
    // Into the switch once.
    std::erase_if(sends, [&, is_first = true](const Send& send) mutable {
      return send.link == LinkId{from} && !std::exchange(is_first, false);
    });
    std::ranges::copy(sends, std::back_inserter(copied.sends));
  }
  canonicalise(copied);
  const ReplayResult replayed = replay(*fabric, demand, copied.sends);
  ASSERT_TRUE(replayed.valid()) << *replayed.violation;
  copied.finish_us = replayed.finish_us;
  const OrbitPlans plans = plans_of(*fabric);
  ASSERT_EQ(plans.num_automorphisms(), 4U);
  EXPECT_FALSE(plans.folded(copied, 1));
  EXPECT_TRUE(plans.folded(listed(fabric, demand), 1));
}

/// A try costs a sixteenth, and the plan that is found is symmetric.
TEST(OrbitPlans, AreImproved) {
  const Fabric torus = generated("torus", {{"dims", "4x4"}});
  const OrbitPlans plans = plans_of(*torus);
  const Demand demand = allgather(*torus, 4);
  const Schedule start = listed(torus, demand);
  ImprovementTask task{*torus, demand, 0};
  task.starts = {{4, start.finish_us, [&] { return start; }}};
  task.orbits = &plans;
  task.most_chunks = 4;
  task.work_limit = 1e5;
  task.stop = [](double) { return false; };
  const Improvement found = improve(task, *make_local_communicator());
  ASSERT_TRUE(found.schedule);
  EXPECT_LT(found.schedule->finish_us, start.finish_us);
  const ReplayResult replayed = replay(*torus, demand, found.schedule->sends);
  ASSERT_TRUE(replayed.valid()) << *replayed.violation;
  EXPECT_DOUBLE_EQ(replayed.finish_us, found.schedule->finish_us);
  const Schedule again = plans.unfolded(placed(plans, *found.schedule, 4), 4);
  EXPECT_LE(again.finish_us, found.schedule->finish_us * (1 + 1e-9));
}

/// A run that ends among symmetric plans, or behind them, is resumed to the same schedule.
TEST(OrbitPlans, AreResumed) {
  const Fabric torus = generated("torus", {{"dims", "4x4"}});
  const Demand demand = make_demand(Collective::allgather, 64e3, 16, 1);
  SolveOptions options;
  options.engine = "list";
  options.improve_work = 5e4;
  std::vector<std::pair<std::string, Bytes>> states;
  const auto run = [&](StateStore kept) {
    const RunStore store{.checkpoints = std::make_shared<Checkpoints>(std::move(kept), 0)};
    return synthesize({torus, demand, options}, {.communicator = *make_local_communicator(), .store = store});
  };
  const SynthesisResult whole =
      run({.keep = [&](const std::string& name, const Bytes& state) { states.emplace_back(name, state); }});
  std::vector<std::size_t> tried;
  for (std::size_t i = 0; i < states.size(); ++i) {
    const bool is_last = i + 1 == states.size() || states[i + 1].first != states[i].first;
    if (is_last || (i > 0 && states[i - 1].first != states[i].first)) tried.push_back(i);
  }
  EXPECT_TRUE(std::ranges::any_of(states, [](const auto& s) { return s.first == "improvement-symmetric"; }));
  EXPECT_EQ(states.back().first, "improvement");
  for (const std::size_t last : tried) {
    const SynthesisResult resumed = run({.newest = [&](const std::string& name) {
      std::optional<Bytes> newest;
      for (std::size_t k = 0; k <= last; ++k) {
        if (states[k].first == name) newest = states[k].second;
      }
      return newest;
    }});
    expect_same_sends(resumed.proven.schedule, whole.proven.schedule);
  }
}

}  // namespace
}  // namespace rondo::test_orbit_plans
