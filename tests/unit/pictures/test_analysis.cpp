#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "analysis.hpp"
#include "drawn_schedule.hpp"
#include "fabric.hpp"
#include "places.hpp"
#include "text.hpp"

namespace rondo::pictures::test_analysis {
namespace {

TEST(Analysis, LoadsAreThoseOfTheSends) {
  const auto loads = link_loads(test::line());
  ASSERT_EQ(loads.size(), 6U);
  for (std::size_t l = 0; l < 6; ++l) {
    EXPECT_EQ(loads[l].bytes, l < 3 ? 1000 : 0) << l;
    EXPECT_EQ(loads[l].busy_us, l < 3 ? 1 : 0) << l;
    EXPECT_EQ(loads[l].sends, l < 3 ? 1U : 0U) << l;
  }
  EXPECT_EQ(utilisation({LinkId(0), LinkId(5)}, loads, 5), 0.1);
}

TEST(Analysis, BusySharesAreAveragedOverTheLinksOfARow) {
  const ProvenSchedule proven = test::line();
  // Row 0: links 0 and 3; row 1: link 2; two bins of 2.5 us.
  const auto shares = busy_shares(proven, {0, -1, 1, 0, -1, -1}, 2, 2, 5);
  ASSERT_EQ(shares.size(), 4U);
  EXPECT_FLOAT_EQ(shares[0], 0.2F);  // 1 us of 2 x 2.5
  EXPECT_FLOAT_EQ(shares[1], 0);
  EXPECT_FLOAT_EQ(shares[2], 0);
  EXPECT_FLOAT_EQ(shares[3], 0.4F);
}

TEST(Analysis, SendsThatShareALinkAreStacked) {
  const ProvenSchedule proven = test::shared_sum();
  EXPECT_EQ(link_shares(proven), (std::vector<double>{1, 1, 0.5, 0.5, 1}));
  EXPECT_DOUBLE_EQ(link_loads(proven)[2].busy_us, 1);
  using Row = std::tuple<int, double, double, double, double>;
  std::vector<Row> rows;
  for (const StackedPart& part : stacked(proven)) {
    if (part.send == 2 || part.send == 3)
      rows.emplace_back(part.send, part.from_us, part.to_us, part.low, part.high);
  }
  // The second one stands on the first until that is done.
  EXPECT_EQ(rows, (std::vector<Row>{{2, 1, 2, 0, 0.5}, {3, 1.5, 2, 0.5, 1}, {3, 2, 2.5, 0, 0.5}}));
}

TEST(Analysis, SumsGrowOnTheirWay) {
  const SumFacts facts = sum_facts(test::shared_sum());
  EXPECT_EQ(facts.sources, (std::vector<int>{1, 1, 1, 1, 3}));
  EXPECT_EQ(facts.adds, (std::vector<char>{1, 1, 1, 1, 0}));
  EXPECT_EQ(facts.complete, std::vector<NodeId>{NodeId{2}});
  EXPECT_EQ(sum_facts(test::line()).complete, std::vector<NodeId>{NodeId{0}});
}

TEST(Places, ChassisTakeTheirSwitchesIn) {
  const Topology rails = generate_topology("rails", {{"boxes", "3"}, {"gpus", "4"}, {"rails", "2"}});
  const Places places = places_of(rails);
  EXPECT_EQ(places.num_groups(), 3U);
  EXPECT_EQ(places.all.size(), 5U);  // and two rail switches
  EXPECT_EQ(places.all[0].label, "chassis 0");
  EXPECT_EQ(places.all[0].gpus.size(), 4U);
  EXPECT_EQ(places.all[0].switches.size(), 1U);
}

TEST(Places, WithoutChassisASwitchGathersItsGpus) {
  const Places places =
      places_of(generate_topology("fat_tree", {{"leaves", "2"}, {"gpus", "3"}, {"spines", "1"}}));
  EXPECT_EQ(places.num_groups(), 2U);
  EXPECT_EQ(places.all[0].label, "leaf0");
  EXPECT_EQ(places_of(generate_topology("ring", {{"gpus", "5"}})).num_groups(), 0U);
}

TEST(TimelineRows, EveryLinkIsInOneRowAndThereAreNotTooMany) {
  for (const char* family : {"rails", "torus", "dragonfly", "fat_tree", "ring", "full"}) {
    const Topology topology = generate_topology(family, {});
    const Places places = places_of(topology);
    for (const std::size_t most : {4U, 7U, 30U, 1000U}) {
      const auto rows = timeline_rows(topology, places, most);
      EXPECT_LE(rows.size(), most) << family;
      std::size_t links = 0;
      for (const Row& row : rows) links += row.links.size();
      EXPECT_EQ(links, topology.num_links()) << family;
      for (const int row : row_of_links(rows, topology.num_links())) EXPECT_GE(row, 0) << family;
    }
  }
}

TEST(TopologyDrawing, NodesStandApartAndInTheFrame) {
  for (const char* spec : {"rails", "torus", "dragonfly", "fat_tree", "ring", "full", "star"}) {
    const Topology topology = generate_topology(spec, {});
    const TopologyDrawing drawing = draw_fabric(topology, places_of(topology));
    std::size_t links = 0;
    for (const DrawnLink& link : drawing.links) links += link.links.size();
    for (const DrawnNode& node : drawing.nodes) links += node.inside.size();
    EXPECT_EQ(links, topology.num_links()) << spec;
    for (std::size_t a = 0; a < drawing.nodes.size(); ++a) {
      const DrawnNode& node = drawing.nodes[a];
      EXPECT_GE(std::min(node.at.x, node.at.y), node.radius) << spec;
      EXPECT_LE(node.at.x + node.radius, drawing.width) << spec;
      EXPECT_LE(node.at.y + node.radius, drawing.height) << spec;
      for (std::size_t b = 0; b < a; ++b) {
        const DrawnNode& other = drawing.nodes[b];
        EXPECT_GE(std::hypot(node.at.x - other.at.x, node.at.y - other.at.y), node.radius + other.radius)
            << spec << " " << node.label << " " << other.label;
      }
    }
  }
}

TEST(TopologyDrawing, LinksGoRoundTheEdgesOfATorusAndNoOtherGrid) {
  const auto going_round = [](const Topology& topology) {
    const TopologyDrawing drawing = draw_fabric(topology, places_of(topology));
    return std::count_if(drawing.links.begin(), drawing.links.end(),
                         [](const DrawnLink& link) { return std::hypot(link.round.x, link.round.y) > 0; });
  };
  EXPECT_EQ(going_round(generate_topology("torus", {{"dims", "6x7"}})), 2 * 6 + 2 * 7);
  EXPECT_EQ(going_round(generate_topology("mesh", {{"dims", "6x7"}})), 0);
  EXPECT_EQ(going_round(generate_topology("full", {{"gpus", "36"}})), 0);
}

TEST(TopologyDrawing, GpusWithLinksToAnotherChassisStandNearIt) {
  // Two chassis of four; GPU 2 of the first is linked to GPU 1 of the second.
  TopologyData data{.name = "two", .nodes = std::vector<Node>(8)};
  for (int g = 0; g < 8; ++g) data.nodes[static_cast<std::size_t>(g)].chassis = g / 4;
  for (const auto& [src, dst] : {std::pair{2, 5}, {5, 2}}) {
    data.links.push_back({.src = NodeId(src), .dst = NodeId(dst), .bandwidth_GBps = 1, .latency_us = 1});
  }
  const Topology topology(std::move(data));
  const TopologyDrawing drawing = draw_fabric(topology, places_of(topology));
  const auto x = [&](std::size_t n) {
    return drawing.nodes[n].at.x;
  };  // the second stands right of the first
  for (const std::size_t other : {0, 1, 3}) EXPECT_LE(x(other), x(2) + 1e-9) << other;
  for (const std::size_t other : {4, 6, 7}) EXPECT_GE(x(other), x(5) - 1e-9) << other;
  EXPECT_LT(x(0), x(2) - 1);
}

TEST(Text, NamesCannotBreakOut) {
  EXPECT_EQ(markup("<a & \"b\">"), "&lt;a &amp; &quot;b&quot;&gt;");
  EXPECT_EQ(printable("a\n\x01z"), "a??z");
  EXPECT_EQ(printable("\xff"), "\xEF\xBF\xBD");  // the replacement character
}

}  // namespace
}  // namespace rondo::pictures::test_analysis
