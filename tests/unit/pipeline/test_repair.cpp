#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "expect_error.hpp"
#include "rondo/core/random.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/core/verify.hpp"
#include "rondo/pipeline/repair.hpp"
#include "rondo/pipeline/synthesize.hpp"
#include "topologies.hpp"

/// Links that fail while a schedule is running.
namespace rondo::test_repair {
namespace {

using Fabric = std::shared_ptr<const Topology>;

ProvenSchedule solved(const Fabric& topology, Collective collective, double bytes, int chunks = 0) {
  SolveOptions options;
  // An AllReduce is begun by halves, in as many chunks as it takes.
  const bool is_whole = collective == Collective::allreduce;
  options.engine = is_whole ? "auto" : "list";
  options.chunks = is_whole ? 0 : chunks;
  options.gap = 10;
  options.improve_work = 0;
  const Problem problem{topology, make_demand(collective, bytes, topology->num_gpus(), 1), options};
  return synthesize(problem, {*make_local_communicator()}).proven;
}

/// Both directions between the ends of a link.
Failure failure_at(const Topology& topology, double at_us, LinkId link, double factor = 0) {
  Failure failure{at_us, {}};
  const Link& one = topology.link(link);
  for (std::size_t l = 0; l < topology.num_links(); ++l) {
    const Link& other = topology.links()[l];
    if ((other.src == one.src && other.dst == one.dst) || (other.src == one.dst && other.dst == one.src))
      failure.links.push_back({LinkId{l}, factor});
  }
  return failure;
}

Repair repaired(const ProvenSchedule& running, const Failure& failure) {
  return repair(running, failure, {*make_local_communicator()});
}

/// What must hold of any repair, told from the running schedule and the sends alone.
void check(const ProvenSchedule& running, const Failure& failure, const Repair& made) {
  if (made.rest) verify(*made.rest);
  const ReplayResult replayed = replay(made.whole.topology, made.whole.demand, made.whole.schedule.sends);
  ASSERT_TRUE(replayed.valid()) << *replayed.violation;
  EXPECT_DOUBLE_EQ(replayed.finish_us, made.whole.schedule.finish_us);
  EXPECT_EQ(difference(running.demand, made.whole.demand), std::nullopt);
  if (failure.at_us == 0) return;  // the whole schedule is then on the fabric that is left
  const auto has_failed = [&](LinkId l) {
    return std::ranges::any_of(failure.links,
                               [&](const LinkFailure& f) { return f.link == l && f.factor == 0; });
  };
  for (const Send& send : made.whole.schedule.sends) {
    if (has_failed(send.link)) {
      EXPECT_LE(send.arrival_us, failure.at_us + 1e-5);
    }
    // Before the failure nothing else happens than before.
    if (send.start_us >= failure.at_us - 1e-5) continue;
    EXPECT_TRUE(std::ranges::any_of(running.schedule.sends, [&](const Send& s) {
      return s.chunk == send.chunk && s.link == send.link && s.start_us == send.start_us;
    }));
  }
}

/// 1 MB from GPU 0 to 1 and on to 2, over a ring both ways: 1000 us and 1 us a hop.
ProvenSchedule relayed() {
  std::vector<Link> links;
  for (const auto& [src, dst] :
       std::vector<std::pair<int, int>>{{0, 1}, {1, 2}, {2, 0}, {1, 0}, {2, 1}, {0, 2}})
    links.push_back(link(src, dst));
  const Fabric ring = fabric(std::vector<Node>(3), links);
  Demand demand(Collective::custom, kMB, 3,
                {Contribution{.origin = GpuId{0}, .bytes = kMB, .destinations = {GpuId{1}, GpuId{2}}}}, 1);
  return {
      *ring,
      std::move(demand),
      {{Send{ChunkId{0}, LinkId{0}, 0, 1000, 1001}, Send{ChunkId{0}, LinkId{1}, 1001, 2001, 2002}}, 2002}};
}

TEST(Repair, WhatIsInFlightIsLostOnTheDeadLinkAlone) {
  const ProvenSchedule running = relayed();
  // 0 -> 1 dies in the middle: the chunk goes over 2.
  const Repair lost = repaired(running, failure_at(running.topology, 400, LinkId{0}));
  EXPECT_EQ(lost.lost, 1U);
  EXPECT_NEAR(lost.rest->schedule.finish_us, 2002, 1e-6);
  EXPECT_NEAR(lost.rest->lower_bound->us, 1002, 1e-6);  // in many chunks, that follow one another
  EXPECT_NEAR(lost.whole.schedule.finish_us, 2402, 1e-6);
  // 1 -> 2 dies then: what is in flight lands, and 0 serves 2 at once.
  const Repair other = repaired(running, failure_at(running.topology, 400, LinkId{1}));
  EXPECT_EQ(other.lost, 0U);
  EXPECT_EQ(other.in_flight, 1U);
  EXPECT_NEAR(other.landed_us, 1001, 1e-6);
  EXPECT_NEAR(other.whole.schedule.finish_us, 1401, 1e-6);
  // 0 - 1 dies with the last byte still on the way, and once it has arrived.
  EXPECT_EQ(repaired(running, failure_at(running.topology, 1000.5, LinkId{0})).lost, 1U);
  const Repair none = repaired(running, failure_at(running.topology, 1500, LinkId{0}));
  EXPECT_EQ(none.lost, 0U);
  EXPECT_FALSE(none.rest);
  EXPECT_NEAR(none.whole.schedule.finish_us, 2002, 1e-6);
}

TEST(Repair, ASlowerLinkLosesWhatItTransmits) {
  const ProvenSchedule running = relayed();
  const Repair made = repaired(running, failure_at(running.topology, 400, LinkId{0}, 0.9));
  EXPECT_EQ(made.lost, 1U);
  check(running, failure_at(running.topology, 400, LinkId{0}, 0.9), made);
  EXPECT_NEAR(made.rest->schedule.finish_us, 1e3 / 0.9 + 1, 1e-6);
}

// One piece from GPU 0 to all others: a switch that has it copies it, or each of them would wait for its own.
TEST(Repair, CopiesInSwitchesWhereThePlanDoes) {
  const Fabric tree = generated("fat_tree", {{"leaves", "4"}, {"gpus", "4"}});
  SolveOptions options;
  options.chunks = 1;
  options.gap = 0.01;
  const ProvenSchedule running = synthesize({tree, make_demand(Collective::broadcast, 16e6, 16, 1), options},
                                            {*make_local_communicator()})
                                     .proven;
  EXPECT_NEAR(running.schedule.finish_us, 642, 1e-6);
  const auto up = std::ranges::find_if(running.schedule.sends, [&](const Send& send) {
    return !tree->is_gpu(tree->link(send.link).src) && !tree->is_gpu(tree->link(send.link).dst);
  });
  ASSERT_NE(up, running.schedule.sends.end());
  const Failure failure = failure_at(*tree, 300, up->link);
  const Repair made = repaired(running, failure);
  check(running, failure, made);
  EXPECT_EQ(made.made_by.substr(0, 17), "continued/copying");
  // The link of whoever sends first is taken until 640 us.
  EXPECT_NEAR(made.whole.schedule.finish_us, 640 + 642, 1e-6);
}

TEST(Repair, RefusesWhatCannotBe) {
  const ProvenSchedule running = relayed();
  expect_error(ExitCode::bad_data, {"2002", "before its end"},
               [&] { repaired(running, failure_at(running.topology, 2002, LinkId{0})); });
  expect_error(ExitCode::bad_data, {"-1"},
               [&] { repaired(running, failure_at(running.topology, -1, LinkId{0})); });
  Failure both = failure_at(running.topology, 400, LinkId{0});
  for (const LinkFailure& more : failure_at(running.topology, 400, LinkId{1}).links)
    both.links.push_back(more);
  expect_error(ExitCode::bad_data, {"GPU 1", "GPU 0", "no path"}, [&] { repaired(running, both); });
}

TEST(Repair, RandomFailures) {
  Random random(7);
  int repairs = 0;
  int refused = 0;
  for (const Fabric& topology :
       {generated("rails", {{"boxes", "2"}, {"gpus", "4"}, {"rails", "2"}}),
        generated("torus", {{"dims", "3x3"}}), star(5), star(4, Forwarding::store_and_forward),
        generated("ring", {{"gpus", "5"}})}) {
    for (const Collective collective : {Collective::allgather, Collective::alltoall, Collective::broadcast,
                                        Collective::reduce_scatter, Collective::allreduce}) {
      const ProvenSchedule running = solved(topology, collective, 8 * kMB, 2);
      for (int i = 0; i < 6; ++i) {
        const double at_us = i == 0 ? 0 : running.schedule.finish_us * random.unit();
        const LinkId link(random.below(topology->num_links()));
        const Failure failure = failure_at(*topology, at_us, link, i % 3 == 2 ? 0.5 : 0);
        SCOPED_TRACE(testing::Message() << topology->name() << " " << to_string(collective) << " at " << at_us
                                        << " link " << link.value);
        try {
          const Repair made = repaired(running, failure);
          check(running, failure, made);
          ++repairs;
        } catch (const Error& error) {
          // A GPU is cut off, or its sums are.
          EXPECT_NE(error.code(), ExitCode::internal) << error.what();
          ++refused;
        }
      }
    }
  }
  EXPECT_GE(repairs, 100) << refused;
}

/// The demand with another contribution in its place.
Demand with_part(const Demand& demand, std::size_t i, const Contribution& part) {
  std::vector<Contribution> parts = demand.contributions();
  parts[i] = part;
  if (part.sources.size() == 1 && !part.source_ready_us.empty()) {
    parts[i].ready_us = part.source_ready_us.front();
    parts[i].source_ready_us.clear();
  }
  return {Collective::custom, demand.size_bytes(), demand.num_gpus(), parts, 1};
}

// The rest rests on who has what, and when: a holder less, a later one, and a smaller sum are found.
TEST(Repair, ALiveStateThatIsAnotherIsRefused) {
  Random random(8);
  int gone = 0;
  int later = 0;
  int smaller = 0;
  for (const Fabric& topology : {generated("torus", {{"dims", "3x3"}}), generated("ring", {{"gpus", "6"}})}) {
    for (const Collective collective :
         {Collective::allgather, Collective::broadcast, Collective::reduce_scatter}) {
      const ProvenSchedule running = solved(topology, collective, 8 * kMB, 4);
      for (int i = 0; i < 6; ++i) {
        const double at_us = running.schedule.finish_us * (0.2 + 0.6 * random.unit());
        const Repair made =
            repaired(running, failure_at(*topology, at_us, LinkId(random.below(topology->num_links()))));
        if (!made.rest) continue;
        const ProvenSchedule& rest = *made.rest;
        const auto is_valid = [&](std::size_t part, const Contribution& changed) {
          const Demand demand = with_part(rest.demand, part, changed);
          return replay(rest.topology, demand, rest.schedule.sends).valid();
        };
        for (std::size_t c = 0; c < rest.demand.num_chunks(); ++c) {
          const Contribution& part = rest.demand.contributions()[c];
          const auto sends_from = [&](GpuId g) {
            double first_us = kInfinity;
            for (const Send& send : rest.schedule.sends) {
              const Link& by = rest.topology.link(send.link);
              if (send.chunk.index() != c) continue;
              if (by.src == rest.topology.node_of(g)) first_us = std::min(first_us, send.start_us);
            }
            return first_us;
          };
          for (std::size_t h = 0; h < part.held.size(); ++h) {
            // What a larger sum replaces there need not be whole.
            const bool is_replaced = std::ranges::any_of(rest.schedule.sends, [&](const Send& send) {
              return send.chunk.index() == c && send.op == SendOp::copy &&
                     rest.topology.link(send.link).dst == rest.topology.node_of(part.held[h].gpu);
            });
            if (is_replaced || part.held[h].sources.size() < 2 ||
                !std::isfinite(sends_from(part.held[h].gpu)))
              continue;
            Contribution changed = part;
            // Its own data is there in any case.
            std::vector<GpuId>& sources = changed.held[h].sources;
            sources.erase(std::ranges::find_if(sources, [&](GpuId g) { return g != part.held[h].gpu; }));
            EXPECT_FALSE(is_valid(c, changed));
            ++smaller;
          }
          if (part.reduce) continue;
          for (std::size_t s = 0; s < part.all_sources().size(); ++s) {
            const double first_us = sends_from(part.all_sources()[s]);
            if (!std::isfinite(first_us)) continue;
            Contribution changed = part;
            changed.sources.assign(part.all_sources().begin(), part.all_sources().end());
            if (changed.source_ready_us.empty())
              changed.source_ready_us.assign(changed.sources.size(), part.ready_us);
            Contribution without = changed;
            changed.source_ready_us[s] = first_us + 1e-2;
            EXPECT_FALSE(is_valid(c, changed));
            ++later;
            if (without.sources.size() == 1) continue;
            without.sources.erase(without.sources.begin() + static_cast<std::ptrdiff_t>(s));
            without.source_ready_us.erase(without.source_ready_us.begin() + static_cast<std::ptrdiff_t>(s));
            without.origin = without.sources.front();
            EXPECT_FALSE(is_valid(c, without));
            ++gone;
          }
        }
      }
    }
  }
  EXPECT_GE(gone, 100);
  EXPECT_GE(later, 100);
  EXPECT_GE(smaller, 30);
}

}  // namespace
}  // namespace rondo::test_repair
