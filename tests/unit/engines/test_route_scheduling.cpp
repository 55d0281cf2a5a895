// By hand: who goes first over a link, and when.

#include <gtest/gtest.h>

#include <map>

#include "fabrics.hpp"
#include "flow/route_justification.hpp"
#include "flow/route_scheduling.hpp"
#include "rondo/core/replay.hpp"

namespace rondo::test_route_scheduling {
namespace {

/// A contribution, which is one chunk, the links it takes and when the model starts each hop, if it does.
struct Routed {
  Contribution contribution;
  std::vector<LinkId> links;
  std::vector<double> start_us = {};
};

class RoutedProblem {
 public:
  RoutedProblem(std::shared_ptr<const Topology> topology, const std::vector<Routed>& chunks)
      : topology_(std::move(topology)), demand_(demand_of(chunks)), table_(table_of(chunks)) {
    for (const auto& routes : table_.of_contribution) {
      routed_.route_of_chunk.push_back(static_cast<int>(routed_.routes.size()));
      routed_.routes.push_back(routes.front());
    }
  }

  std::optional<RouteStarts> start(RouteOrder order, const Deadline& deadline = {}) const {
    return start_routes(*topology_, table_.hops, demand_, routed_, {order}, deadline);
  }
  RouteStarts justified(const RouteStarts& starts, const Deadline& deadline = {}) const {
    return rondo::justified(starts, *topology_, table_.hops, demand_, routed_, kAnyConcurrency, deadline);
  }
  /// (chunk, hop of its route) -> start; with the schedule of the same replayed.
  std::map<std::pair<int, std::size_t>, double> starts(RouteOrder order) const {
    const auto schedule = schedule_routes(*topology_, table_.hops, demand_, routed_, {order});
    const ReplayResult replayed = replay(*topology_, demand_, schedule->sends);
    EXPECT_TRUE(replayed.valid()) << *replayed.violation;
    const std::optional<RouteStarts> decided = start(order);
    EXPECT_DOUBLE_EQ(replayed.finish_us, decided->finish_us);
    std::map<std::pair<int, std::size_t>, double> starts;
    for (const RouteStart& start : decided->starts) starts[{start.chunk, start.position}] = start.start_us;
    return starts;
  }

 private:
  Demand demand_of(const std::vector<Routed>& chunks) const {
    std::vector<Contribution> contributions;
    double bytes = 0;
    for (const Routed& chunk : chunks) {
      contributions.push_back(chunk.contribution);
      bytes += chunk.contribution.bytes;
    }
    return Demand(Collective::custom, bytes, topology_->num_gpus(), std::move(contributions), 1);
  }
  RouteTable table_of(const std::vector<Routed>& chunks) const {
    RouteBuilder builder(*topology_, demand_);
    for (std::size_t c = 0; c < chunks.size(); ++c)
      builder.add(c, chunks[c].links, chunks[c].contribution.bytes, chunks[c].start_us);
    return builder.build();
  }

  std::shared_ptr<const Topology> topology_;
  Demand demand_;
  RouteTable table_;
  RoutedChunks routed_;
};

using Starts = std::map<std::pair<int, std::size_t>, double>;

TEST(RouteScheduling, WhatHasFartherToGoIsFirst) {
  const RoutedProblem problem(
      fabric({gpu(), gpu(), gpu()}, {link(0, 1), link(1, 2)}),
      {{{GpuId{0}, kMB, {GpuId{1}}}, {LinkId{0}}}, {{GpuId{0}, kMB, {GpuId{2}}}, {LinkId{0}, LinkId{1}}}});
  for (const RouteOrder order : {RouteOrder::bottleneck, RouteOrder::load})
    EXPECT_EQ(problem.starts(order), (Starts{{{1, 0}, 0}, {{0, 0}, 1000}, {{1, 1}, 1001}}));
}

TEST(RouteScheduling, TheGreatestLaterLoadOrTheSumOfThem) {
  // Over 0 -> 1 go a chunk on to 2 and 3, and one to 4, for which GPU 1 has 1.5 MB itself. The later links of
  // the one carry 1000 and 1000 us, that of the other 2500 us.
  const RoutedProblem problem(
      fabric({gpu(), gpu(), gpu(), gpu(), gpu()}, {link(0, 1), link(1, 2), link(2, 3), link(1, 4)}),
      {{{GpuId{0}, kMB, {GpuId{3}}}, {LinkId{0}, LinkId{1}, LinkId{2}}},
       {{GpuId{0}, kMB, {GpuId{4}}}, {LinkId{0}, LinkId{3}}},
       {{GpuId{1}, 1.5 * kMB, {GpuId{4}}}, {LinkId{3}}}});
  EXPECT_EQ(problem.starts(RouteOrder::bottleneck).at({1, 0}), 0);
  EXPECT_EQ(problem.starts(RouteOrder::bottleneck).at({0, 0}), 1000);
  EXPECT_EQ(problem.starts(RouteOrder::load).at({0, 0}), 0);
  EXPECT_EQ(problem.starts(RouteOrder::load).at({1, 0}), 1000);
}

TEST(RouteScheduling, TheModelsOrderWithoutItsIdleTime) {
  const RoutedProblem problem(fabric({gpu(), gpu()}, {link(0, 1)}),
                              {{{GpuId{0}, kMB, {GpuId{1}}}, {LinkId{0}}, {5000}},
                               {{GpuId{0}, kMB, {GpuId{1}}}, {LinkId{0}}, {2000}}});
  EXPECT_EQ(problem.starts(RouteOrder::model), (Starts{{{1, 0}, 0}, {{0, 0}, 1000}}));
}

TEST(RouteScheduling, ChunksWaitUntilTheyAreReady) {
  const RoutedProblem problem(fabric({gpu(), gpu()}, {link(0, 1)}),
                              {{{GpuId{0}, kMB, {GpuId{1}}, 500}, {LinkId{0}}}});
  EXPECT_EQ(problem.starts(RouteOrder::bottleneck), (Starts{{{0, 0}, 500}}));
}

TEST(RouteScheduling, OneHopAtATimeTakesALinkOfASwitch) {
  // Links 0, 1: into the switch from GPUs 0 and 1; 5: out of it to GPU 2.
  const RoutedProblem problem(star(3), {{{GpuId{0}, kMB, {GpuId{2}}}, {LinkId{0}, LinkId{5}}},
                                        {{GpuId{1}, 2 * kMB, {GpuId{2}}}, {LinkId{1}, LinkId{5}}}});
  // The link into the switch that has more to carry is served first.
  EXPECT_EQ(problem.starts(RouteOrder::bottleneck), (Starts{{{1, 0}, 0}, {{0, 0}, 2000}}));
}

TEST(RouteScheduling, JustifiedWhatHasFartherToGoIsFirst) {
  // Chunk 0 goes to GPU 1, chunk 1 on to GPU 2. Seen from the end, chunk 0 need not start before 2002.
  const RoutedProblem problem(
      fabric({gpu(), gpu(), gpu()}, {link(0, 1), link(1, 2)}),
      {{{GpuId{0}, kMB, {GpuId{1}}}, {LinkId{0}}}, {{GpuId{0}, kMB, {GpuId{2}}}, {LinkId{0}, LinkId{1}}}});
  const RouteStarts late{{{0, 0, 0}, {1, 0, 1000}, {1, 1, 2001}}, 3002};
  const auto by_chunk = [](const RouteStarts& all) {
    Starts starts;
    for (const RouteStart& start : all.starts) starts[{start.chunk, start.position}] = start.start_us;
    return starts;
  };
  const RouteStarts justified = problem.justified(late);
  EXPECT_EQ(by_chunk(justified), (Starts{{{1, 0}, 0}, {{0, 0}, 1000}, {{1, 1}, 1001}}));
  EXPECT_DOUBLE_EQ(justified.finish_us, 2002);
  // Where nothing is gained, and where there is no time, all is as it was.
  EXPECT_EQ(by_chunk(problem.justified(justified)), by_chunk(justified));
  SolveLimits over;
  over.time_limit_s = 0;
  EXPECT_EQ(by_chunk(problem.justified(late, Deadline(over))), by_chunk(late));
}

TEST(RouteScheduling, NothingIsLeftWhereTheTimeIsOver) {
  const RoutedProblem problem(fabric({gpu(), gpu()}, {link(0, 1)}),
                              {{{GpuId{0}, kMB, {GpuId{1}}}, {LinkId{0}}}});
  SolveLimits over;
  over.time_limit_s = 0;
  EXPECT_FALSE(problem.start(RouteOrder::bottleneck, Deadline(over)));
}

}  // namespace
}  // namespace rondo::test_route_scheduling
