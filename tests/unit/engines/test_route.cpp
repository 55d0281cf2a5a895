#include <gtest/gtest.h>

#include <set>

#include "expect_error.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/core/transfers.hpp"
#include "rondo/engines/route.hpp"
#include "rondo/solvers/solvers.hpp"
#include "topologies.hpp"

namespace rondo::test_route {
namespace {

using Fabric = std::shared_ptr<const Topology>;

EngineResult routed(const Fabric& topology, const Demand& demand, const Sketch* sketch = nullptr,
                    bool join = true) {
  Toolbox tools;
  tools.milp = make_cbc_solver();
  EngineOptions options;
  options.join = join;
  const auto owned = sketch == nullptr ? nullptr : std::make_shared<const Sketch>(*sketch);
  EngineResult result = route_engine(owned).prepare({topology, demand}, options, tools)(demand, options);
  number_transfers(*topology, demand, result.schedule->sends);
  const ReplayResult replayed = replay(*topology, demand, result.schedule->sends);
  EXPECT_TRUE(replayed.valid()) << *replayed.violation;
  EXPECT_NEAR(replayed.finish_us, result.schedule->finish_us, 1e-6);
  return result;
}

std::set<std::pair<int, int>> pairs_of(const Topology& topology, const Demand& demand,
                                       const EngineResult& result) {
  std::set<std::pair<int, int>> pairs;
  for (const Delivery& d : transfers_of(topology, demand, result.schedule->sends).deliveries)
    pairs.insert({d.src.value, d.dst.value});
  return pairs;
}

TEST(Route, ChunksTakeBothWaysAroundADiamond) {
  const Fabric diamond = fabric({gpu(), gpu(), gpu(), gpu()},
                                {link(0, 1, 1, 0), link(1, 3, 1, 0), link(0, 2, 1, 0), link(2, 3, 1, 0)});
  const Demand two(Collective::custom, 2 * kMB, 4,
                   {{.origin = GpuId{0}, .bytes = kMB, .destinations = {GpuId{3}}},
                    {.origin = GpuId{0}, .bytes = kMB, .destinations = {GpuId{3}}}},
                   1);
  const EngineResult result = routed(diamond, two);
  EXPECT_NEAR(result.schedule->finish_us, 2000, 1e-6);
  EXPECT_EQ(pairs_of(*diamond, two, result).size(), 4U);
}

/// Two nodes, {0} and {1, 2}, and a link between them on which a message costs 10 us.
Fabric two_nodes() {
  std::vector<Node> nodes(3);
  nodes[0].chassis = 0;
  nodes[1].chassis = nodes[2].chassis = 1;
  std::vector<Link> links{link(0, 1, 1, 0), link(1, 2, 1, 0)};
  links[0].message_us = 10;
  return fabric(std::move(nodes), std::move(links));
}

TEST(Route, ChunksTravelTogetherBetweenNodes) {
  const Demand two(Collective::custom, 10e3, 3,
                   {{.origin = GpuId{0}, .bytes = 5e3, .destinations = {GpuId{1}}},
                    {.origin = GpuId{0}, .bytes = 5e3, .destinations = {GpuId{1}}}},
                   1);
  EXPECT_NEAR(routed(two_nodes(), two, nullptr, false).schedule->finish_us, 30, 1e-6);  // 10 + 5, twice
  EXPECT_NEAR(routed(two_nodes(), two).schedule->finish_us, 20, 1e-6);                  // 10 + 2 * 5
}

TEST(Route, TogetherOnlyWhereNothingBehindHasToWaitForIt) {
  // Over the second link 20 us each: alone 10 + 20 and twice 20 behind it; together 10 + 40 and twice 20.
  const Demand two(Collective::custom, 40e3, 3,
                   {{.origin = GpuId{0}, .bytes = 20e3, .destinations = {GpuId{2}}},
                    {.origin = GpuId{0}, .bytes = 20e3, .destinations = {GpuId{2}}}},
                   1);
  EXPECT_NEAR(routed(two_nodes(), two).schedule->finish_us, 80, 1e-6);  // 30, 60, and 20 more
}

TEST(Route, FewPeersMakeARingAndManyAMesh) {
  const Fabric four = fabric({gpu(), gpu(), gpu(), gpu(), network_switch()},
                             {link(0, 4, 1, 0), link(1, 4, 1, 0), link(2, 4, 1, 0), link(3, 4, 1, 0),
                              link(4, 0, 1, 0), link(4, 1, 1, 0), link(4, 2, 1, 0), link(4, 3, 1, 0)});
  const Demand allgather = make_demand(Collective::allgather, 4 * kMB, 4, 1);
  Sketch sketch;
  sketch.local = Sketch::Local::switches;
  sketch.switches = {{0, 1, 2, 3}};
  sketch.peers = {Sketch::Peers::few};
  sketch.symmetry = {{1, 4}};
  EXPECT_EQ(pairs_of(*four, allgather, routed(four, allgather, &sketch)).size(), 4U);
  sketch.peers = {Sketch::Peers::many};
  EXPECT_EQ(pairs_of(*four, allgather, routed(four, allgather, &sketch)).size(), 12U);
}

TEST(Route, ATurnThatTheDemandDoesNotKeepIsRefused) {
  Sketch sketch;
  sketch.symmetry = {{1, 3}};
  const Demand broadcast = make_demand(Collective::broadcast, kMB, 3, 1);
  expect_error(ExitCode::bad_data, {"[1, 3]", "GPU 0 has to GPU 1", "broadcast"},
               [&] { routed(one_way_ring(3), broadcast, &sketch); });
}

TEST(Route, ASenderThatLeadsNowhereIsNamed) {
  Sketch sketch;
  sketch.nodes = 2;
  sketch.conn.emplace()[0] = {0};
  sketch.relays[1] = {0};
  const Demand one(Collective::custom, 5e3, 3,
                   {{.origin = GpuId{0}, .bytes = 5e3, .destinations = {GpuId{1}}}}, 1);
  expect_error(ExitCode::unavailable, {"GPU 0", "GPU 1", "no way"},
               [&] { routed(two_nodes(), one, &sketch); });
}

}  // namespace
}  // namespace rondo::test_route
