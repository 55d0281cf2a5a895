// Schedules of representatives and their images, as engine flow makes them.

#include <gtest/gtest.h>

#include "fabrics.hpp"
#include "flow/orbit_problem.hpp"

namespace rondo::test_orbit_problem {
namespace {

/// Three GPUs around a switch: links 0, 1, 2 up and 3, 4, 5 down, each up link with a bus of its own.
struct SmallStar {
  std::shared_ptr<const Topology> topology =
      fabric(star(3)->nodes(), star(3)->links(),
             {{"bus0", {LinkId{0}}, 1}, {"bus1", {LinkId{1}}, 1}, {"bus2", {LinkId{2}}, 1}});
  Demand demand = make_demand(Collective::alltoall, 3 * kMB, 3, 1);
  OrbitProblem problem = orbit_problem(*topology, demand, find_free_group(*topology, demand_pattern(demand)));
};

TEST(OrbitProblem, OneOriginStandsForAll) {
  const SmallStar small;
  const OrbitProblem& problem = small.problem;
  ASSERT_EQ(problem.group.order(), 3U);
  for (int l = 0; l < 6; ++l) EXPECT_EQ(problem.representative(LinkId{l}), LinkId{l < 3 ? 0 : 3});
  ASSERT_EQ(problem.topology.shared_bandwidth().size(), 1U);
  EXPECT_EQ(problem.topology.shared_bandwidth()[0].links, std::vector{LinkId{0}});
  ASSERT_EQ(problem.demand.contributions().size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    const Contribution& c = problem.demand.contributions()[i];
    EXPECT_EQ(c.origin, GpuId{0});
    for (std::size_t e = 0; e < 3; ++e) {
      const Contribution& image = small.demand.contributions()[problem.images[e][i]];
      EXPECT_EQ(image.origin, GpuId{e});
      EXPECT_EQ(image.destinations.front().index(), (c.destinations.front().index() + e) % 3);
    }
  }
}

TEST(OrbitProblem, ImagesStartTogetherOnLinksOfTheirOwn) {
  const SmallStar small;
  const OrbitProblem& problem = small.problem;
  RouteBuilder builder(*small.topology, problem.demand);
  builder.add(0, {LinkId{0}, LinkId{4}}, kMB);
  builder.add(1, {LinkId{0}, LinkId{5}}, kMB);
  const auto routes = orbit_routes(problem, builder.build());
  ASSERT_TRUE(routes);
  for (const Hop& hop : routes->representatives.hops) {
    EXPECT_EQ(hop.links[0].link, LinkId{0});
    EXPECT_EQ(hop.links[1].link, LinkId{3});
  }
  RoutedChunks routed;
  for (const auto& of_contribution : routes->representatives.of_contribution)
    routed.routes.push_back(of_contribution.front());
  routed.route_of_chunk = {0, 1};
  // Over representatives both hops are one.
  const RoutedChunks merged = merge_hops(routes->representatives, routed);
  EXPECT_EQ(merged.routes[0].hops, merged.routes[1].hops);
  EXPECT_NE(routed.routes[0].hops, routed.routes[1].hops);
  // Chunk 0 starts at 0 us, chunk 1 at 1000: each GPU sends to the next one, then to the one after it.
  const Schedule own = schedule_of({{{0, 0, 0}, {1, 0, 1000}}, 2002}, *small.topology, routes->real.hops,
                                   problem.demand, routed);
  const Schedule schedule = images_of(own, problem, 1);
  EXPECT_DOUBLE_EQ(schedule.finish_us, 2002);
  ASSERT_EQ(schedule.sends.size(), 12U);
  for (const Send& send : schedule.sends) {
    const GpuId origin = small.demand.origin(send.chunk);
    const GpuId destination = small.demand.destinations(send.chunk).front();
    const bool is_up = send.link.index() < 3;
    EXPECT_EQ(send.link, is_up ? LinkId{origin.index()} : LinkId{3 + destination.index()});
    const bool is_next = destination.index() == (origin.index() + 1) % 3;
    EXPECT_DOUBLE_EQ(send.start_us, (is_next ? 0 : 1000) + (is_up ? 0 : 1));
  }
}

TEST(OrbitProblem, HopsThatMeetTheirImagesAreLeftOut) {
  // The only path from GPU 0 to GPU 1 that is given takes links 3 -> 4 and 4 -> 5 of one orbit.
  const auto ring = fabric({gpu(), gpu(), gpu(), network_switch(), network_switch(), network_switch()},
                           {link(0, 3), link(1, 4), link(2, 5), link(3, 4), link(4, 5), link(5, 3),
                            link(3, 2), link(4, 0), link(5, 1)});
  const Demand demand(Collective::custom, 3 * kMB, 3,
                      {{GpuId{0}, kMB, {GpuId{1}}}, {GpuId{1}, kMB, {GpuId{2}}}, {GpuId{2}, kMB, {GpuId{0}}}},
                      1);
  const OrbitProblem problem = orbit_problem(*ring, demand, find_free_group(*ring, demand_pattern(demand)));
  ASSERT_EQ(problem.group.order(), 3U);
  RouteBuilder builder(*ring, problem.demand);
  builder.add(0, {LinkId{0}, LinkId{3}, LinkId{4}, LinkId{8}}, kMB);
  const auto routes = orbit_routes(problem, builder.build());
  ASSERT_TRUE(routes);  // over GPU 2 it can do without
  EXPECT_TRUE(routes->representatives.of_contribution[0].empty());
}

}  // namespace
}  // namespace rondo::test_orbit_problem
