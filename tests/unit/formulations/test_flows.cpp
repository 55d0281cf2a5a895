#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "rondo/core/error.hpp"
#include "rondo/core/units.hpp"
#include "rondo/formulations/formulations.hpp"
#include "rondo/solvers/solvers.hpp"
#include "topologies.hpp"

namespace rondo::test_flows {
namespace {

Link link(int src, int dst, double bandwidth_GBps) {
  return {NodeId{src}, NodeId{dst}, bandwidth_GBps, 0};
}

Instance instance(std::size_t gpus, std::vector<Link> links, Demand demand,
                  std::vector<SharedBandwidth> shared = {}) {
  return {std::make_shared<const Topology>(
              TopologyData{"test", "", std::vector<Node>(gpus), std::move(links), std::move(shared)}),
          std::move(demand)};
}

/// Of 1 ms each.
void set_epochs(Instance& problem, int epochs) {
  EpochOptions options;
  options.rule = EpochRule::fixed;
  options.tau_us = 1000;
  problem.grid = make_epoch_grid(*problem.topology, problem.demand, options);
  problem.grid->num_epochs = epochs;
}

FlowField solve(const BuiltModel& built) {
  const Solution solution = make_clp_solver()->solve(built.model, {});
  EXPECT_EQ(solution.status, SolveStatus::optimal);
  return built.decode(solution);
}

double bytes_on(const FlowField& field, int link) {
  double sum = 0;
  for (const FlowField::Entry& entry : field.entries) {
    if (entry.link == LinkId{link}) sum += entry.amount;
  }
  return sum;
}

TEST(SteadyStateFlow, OneWayRing) {
  const FlowField field = solve(steady_state_flow(instance(
      3, {link(0, 1, 1), link(1, 2, 1), link(2, 0, 1)}, make_demand(Collective::alltoall, 3 * kMB, 3, 1))));
  EXPECT_NEAR(field.finish_us, 3000, 1e-6);
  double priced = 0;
  for (int l = 0; l < 3; ++l) {
    EXPECT_NEAR(bytes_on(field, l), 3 * kMB, 1e-3);
    priced += kBytesPerUsPerGBps * field.link_price[static_cast<std::size_t>(l)];
  }
  EXPECT_NEAR(priced, 1, 1e-6);  // us of finish time a us of capacity
}

TEST(SteadyStateFlow, OnlyTheNarrowLinkHasAPrice) {
  const Demand demand(Collective::custom, kMB, 3, {{GpuId{0}, kMB, {GpuId{2}}}}, 1);
  const FlowField field = solve(steady_state_flow(instance(3, {link(0, 1, 4), link(1, 2, 2)}, demand)));
  EXPECT_NEAR(field.finish_us, 500, 1e-6);
  EXPECT_NEAR(field.link_price[0], 0, 1e-12);
  EXPECT_NEAR(field.link_price[1], 1 / 2e3, 1e-9);
}

TEST(SteadyStateFlow, GoesTheShortWayWhereTimeDoesNotSuffer) {
  // 0 -> 1 and the detour over 2 do not limit; 0 -> 3 does.
  const Demand demand(Collective::custom, 5 * kMB, 4,
                      {{GpuId{0}, kMB, {GpuId{1}}}, {GpuId{0}, 4 * kMB, {GpuId{3}}}}, 1);
  const FlowField field = solve(
      steady_state_flow(instance(4, {link(0, 1, 1), link(0, 2, 1), link(2, 1, 1), link(0, 3, 1)}, demand)));
  EXPECT_NEAR(field.finish_us, 4000, 1e-6);
  EXPECT_NEAR(bytes_on(field, 0), kMB, 1e-3);
  EXPECT_EQ(bytes_on(field, 1), 0);
}

TEST(SteadyStateFlow, SharedBandwidth) {
  const FlowField field = solve(steady_state_flow(instance(3, {link(1, 0, 1), link(2, 0, 1)},
                                                           make_demand(Collective::gather, 3 * kMB, 3, 1),
                                                           {{"bus", {LinkId{0}, LinkId{1}}, 1}})));
  EXPECT_NEAR(field.finish_us, 2000, 1e-6);
}

TEST(SteadyStateFlow, RefusesMulticast) {
  EXPECT_THROW(steady_state_flow(instance(3, {link(0, 1, 1), link(1, 2, 1), link(2, 0, 1)},
                                          make_demand(Collective::allgather, kMB, 3, 1))),
               Error);
}

TEST(TimeExpandedFlow, DeliversWhatTheEpochsAllow) {
  // 2 MB over two links of 1 GB/s in a row, 1 MB an epoch: 3 epochs suffice, 2 deliver half.
  const Demand demand(Collective::custom, 2 * kMB, 3, {{GpuId{0}, 2 * kMB, {GpuId{2}}}}, 1);
  Instance problem = instance(3, {link(0, 1, 1), link(1, 2, 1)}, demand);
  for (const auto& [epochs, fraction] : {std::pair{1, 0.0}, {2, 0.5}, {3, 1.0}, {4, 1.0}}) {
    set_epochs(problem, epochs);
    const BuiltModel built = time_expanded_flow(problem);
    const Solution solution = make_clp_solver()->solve(built.model, {});
    EXPECT_NEAR(-solution.objective, fraction, 1e-9) << epochs;
    const FlowField field = built.decode(solution);
    for (const FlowField::Entry& entry : field.entries) EXPECT_EQ(entry.lands, entry.epoch + 1);
    EXPECT_NEAR(bytes_on(field, 1), fraction * 2 * kMB, 1e-3);
    if (epochs == 3) {
      EXPECT_DOUBLE_EQ(field.finish_us, 3000);
    }
  }
}

TEST(TimeExpandedFlow, IntervalsOfConstantFlow) {
  // 9 MB over two links of 1 GB/s in a row, 1 MB an epoch, in 10 epochs of which 1 .. 8 make one interval:
  // the first link carries 1 MB in every epoch but the last, the second one in every epoch but the first.
  const Demand demand(Collective::custom, 9 * kMB, 3, {{GpuId{0}, 9 * kMB, {GpuId{2}}}}, 1);
  Instance problem = instance(3, {link(0, 1, 1), link(1, 2, 1)}, demand);
  set_epochs(problem, 10);
  problem.interval_starts = {0, 1, 9};
  const BuiltModel built = time_expanded_flow(problem);
  const Solution solution = make_clp_solver()->solve(built.model, {});
  EXPECT_NEAR(solution.objective, -1, 1e-9);
  const FlowField field = built.decode(solution);
  ASSERT_EQ(field.entries.size(), 4U);
  EXPECT_DOUBLE_EQ(field.finish_us, 10000);
  for (const FlowField::Entry& entry : field.entries)
    EXPECT_NEAR(entry.amount, (entry.epoch == 1 ? 8 : 1) * kMB, 1e-3) << entry.epoch;
}

TEST(TimeExpandedFlow, FitsWhatIsFixed) {
  // 4 MB that come from 2 in at 0 and go out at 1 to 3, over 0 -> 1 at 1 MB an epoch. They go out in epochs 1
  // and 2, half and half: by then the link has carried 1 and 2 MB.
  const Demand demand(Collective::custom, 4 * kMB, 4, {{GpuId{2}, 4 * kMB, {GpuId{3}}}}, 1);
  Instance problem = instance(4, {link(0, 1, 1)}, demand);
  set_epochs(problem, 4);
  for (const auto& [enters, fraction] : {std::pair{0, 0.5}, {1, 0.0}}) {
    problem.fixed_flows = {{GpuId{2}, NodeId{2}, NodeId{0}, enters, enters + 2, 0, 4 * kMB},
                           {GpuId{2}, NodeId{1}, NodeId{3}, 1, 3, 1, 4 * kMB}};
    const BuiltModel built = time_expanded_flow(problem);
    const Solution solution = make_clp_solver()->solve(built.model, {});
    EXPECT_NEAR(-solution.objective, fraction, 1e-9) << enters;
    EXPECT_NEAR(bytes_on(built.decode(solution), 0), fraction * 4 * kMB, 1e-3);
  }
}

/// Entries as (row, column, value), in any order.
using Entries = std::multiset<std::tuple<int, int, double>>;

Entries entries_of(const LinearModel& model) {
  Entries entries;
  for (std::size_t e = 0; e < model.entry_row.size(); ++e)
    entries.insert({model.entry_row[e], model.entry_column[e], model.entry_value[e]});
  return entries;
}

TEST(TimeExpandedFlow, SharesMeetAtOneTime) {
  // 0 and 1 each send 9 MB to 2 over 1 -> 2 of 1 GB/s, 1 MB an epoch: 18 epochs suffice.
  const Demand demand(Collective::custom, 18 * kMB, 3,
                      {{GpuId{0}, 9 * kMB, {GpuId{2}}}, {GpuId{1}, 9 * kMB, {GpuId{2}}}}, 1);
  Instance problem = instance(3, {link(0, 1, 1), link(1, 2, 1)}, demand);
  set_epochs(problem, 19);
  problem.share = ColumnShare{0, 1};
  const BuiltModel whole = time_expanded_flow(problem);
  const Solution solution = make_clp_solver()->solve(whole.model, {});
  EXPECT_NEAR(solution.objective, -1, 1e-9);
  EXPECT_NEAR(bytes_on(whole.decode(solution), 0), 9 * kMB, 1e-3);
  EXPECT_NEAR(bytes_on(whole.decode(solution), 1), 18 * kMB, 1e-3);

  Entries together;
  std::map<int, std::set<int>> shares_of_row;
  for (const int part : {0, 1}) {
    problem.share = ColumnShare{part, 2};
    const LinearModel model = time_expanded_flow(problem).model;
    EXPECT_EQ(model.num_columns(), whole.model.num_columns());
    together.merge(entries_of(model));
    for (const int row : model.entry_row) shares_of_row[row].insert(part);
  }
  EXPECT_EQ(together, entries_of(whole.model));
  // Between two epochs data lie at 1 and 2: four balances, and one capacity of the epoch that is cut.
  // Numbered by origin the shares would meet in all 18 epochs of 1 -> 2.
  EXPECT_LE(std::ranges::count_if(shares_of_row, [](const auto& row) { return row.second.size() > 1; }), 5);
}

TEST(TimeExpandedFlow, NeedsItsEpochs) {
  const Demand demand(Collective::custom, kMB, 2, {{GpuId{0}, kMB, {GpuId{1}}}}, 1);
  EXPECT_THROW(time_expanded_flow(instance(2, {link(0, 1, 1)}, demand)), Error);
}

}  // namespace
}  // namespace rondo::test_flows
