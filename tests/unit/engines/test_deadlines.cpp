#include <gtest/gtest.h>

#include <atomic>
#include <cmath>

#include "fabrics.hpp"
#include "flow/route_scheduling.hpp"
#include "rondo/bounds/bounds.hpp"
#include "rondo/bounds/cuts.hpp"
#include "rondo/core/generators.hpp"
#include "rondo/engines/engines.hpp"
#include "rondo/flows/rounding.hpp"
#include "rondo/model/deadline.hpp"

/// That each long step looks at its deadline.
namespace rondo::test_deadlines {
namespace {

SolveLimits seconds(double s) {
  SolveLimits limits;
  limits.time_limit_s = s;
  return limits;
}

std::shared_ptr<const Topology> damaged_torus() {
  return std::make_shared<const Topology>(
      degrade(generate_topology("torus", {{"dims", "4x4"}}), 0.2, 0.5, 1));
}

Demand of_all(Collective collective, const Topology& topology, int chunks = 1) {
  return make_demand(collective, 1e9, topology.num_gpus(), chunks);
}

TEST(Deadlines, EndAtTheirTimeOrByTheirInterrupt) {
  EXPECT_FALSE(Deadline().is_over());
  EXPECT_TRUE(std::isinf(Deadline().seconds_left()));
  EXPECT_EQ(Deadline(seconds(0)).ended_by(), "time");
  const Deadline hour(seconds(3600));
  EXPECT_EQ(hour.ended_by(), "");
  EXPECT_NEAR(hour.left_of({}, 0.5).time_limit_s, 1800, 1);
  EXPECT_NEAR(hour.after(0.25).seconds_left(), 900, 1);
  EXPECT_EQ(Deadline().left_of({}, 0.5).time_limit_s, -1);
  std::atomic<bool> interrupt{true};
  SolveLimits interrupted = seconds(3600);
  interrupted.interrupt = &interrupt;
  EXPECT_EQ(Deadline(interrupted).after(0.5).ended_by(), "interrupted");
}

TEST(Deadlines, ListSchedulersGiveUp) {
  const auto topology = damaged_torus();
  const Instance instance{topology, of_all(Collective::allgather, *topology)};
  for (const Engine& prepare : {Engine(prepare_list), Engine(prepare_queue)}) {
    EngineOptions options;
    const PreparedEngine engine = prepare(instance, options, tools());
    EXPECT_TRUE(engine(instance.demand, options).schedule.has_value());
    options.limits = seconds(0);
    const EngineResult late = engine(instance.demand, options);
    EXPECT_FALSE(late.schedule.has_value());
    EXPECT_EQ(late.limits_hit, std::vector<std::string>{"time"});
  }
}

TEST(Deadlines, FlowGivesUpAndItsRoundingEndsWhereItIs) {
  const auto topology = damaged_torus();
  const Demand demand = of_all(Collective::alltoall, *topology, 4);
  const RouteTable table = RouteBuilder(*topology, demand).build();
  const auto rounded = [&](const Deadline& deadline) {
    return round_to_chunks(*topology, demand, table, RoutingStart::shortest, 0, deadline);
  };
  const RoutedChunks even = rounded({});
  const RoutedChunks late = rounded(Deadline(seconds(0)));
  EXPECT_EQ(late.route_of_chunk.size(), demand.num_chunks());
  EXPECT_GT(late.greatest_load_us, even.greatest_load_us);
  const auto starts = [&](const Deadline& deadline) {
    return start_routes(*topology, table.hops, demand, late, {RouteOrder::bottleneck}, deadline);
  };
  EXPECT_TRUE(starts({}).has_value());
  EXPECT_FALSE(starts(Deadline(seconds(0))).has_value());

  EngineOptions options;
  const PreparedEngine flow = prepare_flow({topology, demand}, options, tools());
  options.limits = seconds(0);
  EXPECT_FALSE(flow(demand, options).schedule.has_value());
}

TEST(Deadlines, LpFindsNoFlowOfLeastTime) {
  const auto topology = damaged_torus();
  const Demand demand = of_all(Collective::alltoall, *topology);
  EngineOptions options;
  options.bound_us = 1;
  options.limits = seconds(0);
  EXPECT_ANY_THROW(prepare_lp({topology, demand}, options, tools()));
}

TEST(Deadlines, CutsAndBoundsAreThoseFoundByThen) {
  const auto topology = damaged_torus();
  for (const Collective collective : {Collective::allgather, Collective::alltoall}) {
    const Demand demand = of_all(collective, *topology);
    const Symmetry none = trivial_symmetry(*topology);
    const auto best_us = [&](CutEffort effort, const Deadline& deadline) {
      return find_cuts(*topology, demand, none, effort, deadline).front().bandwidth_bound_us;
    };
    EXPECT_EQ(best_us(CutEffort::all, Deadline(seconds(0))), best_us(CutEffort::simple, {}));
    const double whole_us = lower_bounds({topology, demand}, tools()).best().us;
    const Bounds late = lower_bounds({topology, demand}, tools(), true, seconds(0));
    EXPECT_GT(late.best().us, 0.1 * whole_us);
    EXPECT_LE(late.best().us, whole_us * (1 + 1e-9));
    EXPECT_FALSE(late.steady->field.has_value());
  }
}

}  // namespace
}  // namespace rondo::test_deadlines
