#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "expect_error.hpp"
#include "rondo/core/collective.hpp"
#include "rondo/core/generators.hpp"

namespace rondo::test_generators {
namespace {

using Values = std::map<std::string, std::string>;

struct Shape {
  std::string family;
  Values values;
  std::string name;
  std::size_t gpus;
  std::size_t switches;
  std::size_t links;
  std::set<std::size_t> gpu_degrees;  ///< out-degrees that occur
  std::set<std::size_t> switch_degrees;
};

std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  return out << shape.name;
}

std::string shape_name(const testing::TestParamInfo<Shape>& test) {
  std::string name = test.param.name;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '-'; }, '_');
  return name;
}

class Generated : public testing::TestWithParam<Shape> {};

TEST_P(Generated, HasItsNodesLinksAndDegrees) {
  const Shape& shape = GetParam();
  const Topology topology = generate_topology(shape.family, shape.values);
  EXPECT_EQ(topology.name(), shape.name);
  EXPECT_EQ(topology.num_gpus(), shape.gpus);
  EXPECT_EQ(topology.num_nodes(), shape.gpus + shape.switches);
  EXPECT_EQ(topology.num_links(), shape.links);
  std::set<std::size_t> gpu_degrees;
  std::set<std::size_t> switch_degrees;
  std::set<std::string> names;
  for (std::size_t n = 0; n < topology.num_nodes(); ++n) {
    const NodeId node(n);
    (topology.is_gpu(node) ? gpu_degrees : switch_degrees).insert(topology.out_links(node).size());
    EXPECT_EQ(topology.out_links(node).size(), topology.in_links(node).size());
    names.insert(topology.node(node).name);
  }
  EXPECT_EQ(gpu_degrees, shape.gpu_degrees);
  EXPECT_EQ(switch_degrees, shape.switch_degrees);
  EXPECT_EQ(names.size(), topology.num_nodes()) << "names repeat";
}

TEST_P(Generated, HasNoParallelLinksAndTheSameLinkBack) {
  const Topology topology = generate_topology(GetParam().family, GetParam().values);
  std::set<std::tuple<NodeId, NodeId, double, double>> links;
  std::set<std::pair<NodeId, NodeId>> ends;
  for (const Link& l : topology.links()) {
    links.emplace(l.src, l.dst, l.bandwidth_GBps, l.latency_us);
    ends.emplace(l.src, l.dst);
  }
  EXPECT_EQ(ends.size(), topology.num_links());
  const bool one_path = GetParam().values.contains("bidirectional");
  for (const auto& [src, dst, bandwidth, latency] : links) {
    EXPECT_EQ(links.contains({dst, src, bandwidth, latency}), !one_path);
  }
}

TEST_P(Generated, ConnectsAllGpus) {
  const Topology topology = generate_topology(GetParam().family, GetParam().values);
  EXPECT_NO_THROW(check_reachable(topology, make_demand(Collective::allgather, 1, topology.num_gpus(), 1)));
}

INSTANTIATE_TEST_SUITE_P(
    Families, Generated,
    testing::Values(
        Shape{"ring", {{"gpus", "4"}}, "ring-4", 4, 0, 8, {2}, {}},
        Shape{"ring", {{"gpus", "2"}}, "ring-2", 2, 0, 2, {1}, {}},
        Shape{"ring", {{"gpus", "4"}, {"bidirectional", "false"}}, "ring-4-unidirectional", 4, 0, 4, {1}, {}},
        Shape{"mesh", {{"dims", "3x3"}}, "mesh-3x3", 9, 0, 24, {2, 3, 4}, {}},
        Shape{"mesh", {{"dims", "3"}}, "mesh-3", 3, 0, 4, {1, 2}, {}},
        Shape{"torus", {{"dims", "4x4x4"}}, "torus-4x4x4", 64, 0, 384, {6}, {}},
        Shape{"torus", {{"dims", "3x5"}}, "torus-3x5", 15, 0, 60, {4}, {}},
        Shape{"torus", {{"dims", "2x4"}}, "torus-2x4", 8, 0, 24, {3}, {}},
        Shape{"hypercube", {{"dimensions", "3"}}, "hypercube-8", 8, 0, 24, {3}, {}},
        Shape{"full", {{"gpus", "5"}}, "full-5", 5, 0, 20, {4}, {}},
        Shape{"star",
              {{"chassis", "3"}, {"gpus", "4"}, {"uplinks", "2"}},
              "star-3x4-full",
              12,
              1,
              48,
              {3, 4},
              {6}},
        Shape{"star", {{"intra", "ndv2"}}, "star-2x8-ndv2", 16, 1, 68, {4, 5}, {2}},
        Shape{"star",
              {{"intra", "ring"}, {"gpus", "4"}, {"uplinks", "4"}},
              "star-2x4-ring",
              8,
              1,
              32,
              {3},
              {8}},
        Shape{"star",
              {{"intra", "ring"}, {"gpus", "2"}, {"uplinks", "2"}},
              "star-2x2-ring",
              4,
              1,
              12,
              {2},
              {4}},
        Shape{"star",
              {{"intra", "switch"}, {"gpus", "4"}, {"uplinks", "4"}},
              "star-2x4-switch",
              8,
              3,
              32,
              {2},
              {4, 8}},
        Shape{"rails", {}, "rails-2x8-8", 16, 10, 64, {2}, {2, 8}},
        Shape{"rails", {{"boxes", "4"}, {"rails", "2"}}, "rails-4x8-2", 32, 6, 128, {2}, {8, 16}},
        Shape{"fat_tree", {{"spines", "3"}}, "fat_tree-4x4-3", 16, 7, 56, {1}, {4, 7}},
        // 72 x 2 host links, 9 groups of 4 x 3 local ones, 9 x 8 global ones; a router has 2 + 3 + 2
        Shape{"dragonfly", {}, "dragonfly-9x4x2", 72, 36, 324, {1}, {7}}),
    shape_name);

const Link& link_between(const Topology& topology, const std::string& src, const std::string& dst) {
  for (const Link& link : topology.links()) {
    if (topology.node(link.src).name == src && topology.node(link.dst).name == dst) return link;
  }
  throw std::runtime_error("no link " + src + " -> " + dst);
}

TEST(Generators, DefaultsMakeAFabricOfEveryFamily) {
  for (const TopologyGenerator& family : topology_generators()) {
    const Topology topology = family.generate({});
    EXPECT_EQ(topology.name().substr(0, family.name.size()), family.name);
    Values defaults;
    for (const GeneratorParameter& p : family.parameters) defaults[p.name] = p.default_value;
    EXPECT_EQ(family.generate(defaults).num_links(), topology.num_links());
  }
}

TEST(Generators, EveryFamilyHasMessageCosts) {
  for (const TopologyGenerator& family : topology_generators()) {
    SCOPED_TRACE(family.name);
    EXPECT_FALSE(family.generate({}).has_message_costs());
    EXPECT_FALSE(family.generate({}).has_adding_switches());
    const Topology costly = family.generate({{"message_us", "1.25"}});
    const auto costs = [&](double us) {
      return static_cast<std::size_t>(std::count_if(costly.links().begin(), costly.links().end(),
                                                    [&](const Link& link) { return link.message_us == us; }));
    };
    const bool has_uplinks = costly.num_gpus() < costly.num_nodes();
    EXPECT_GT(costs(1.25), 0U);
    EXPECT_EQ(costs(1.25) + costs(0), costly.num_links());
    EXPECT_EQ(costs(0) > 0, has_uplinks);
  }
}

TEST(Generators, LinksBetweenChassisHaveMessageCostsOfTheirOwn) {
  const auto costs = [](const std::string& family, Values values) {
    values.insert({{"message_us", "1"}, {"inter_message_us", "2"}});
    const Topology topology = generate_topology(family, values);
    std::map<double, std::size_t> links;
    for (const Link& link : topology.links()) ++links[link.message_us];
    return links;
  };
  using Links = std::map<double, std::size_t>;
  // 2 chassis of 8 GPUs: 2 x 16 pairs of the hybrid cube mesh and an uplink each.
  EXPECT_EQ(costs("star", {{"intra", "ndv2"}}), (Links{{1, 64}, {2, 4}}));
  EXPECT_EQ(costs("star", {{"intra", "switch"}}), (Links{{1, 32}, {2, 4}}));
  EXPECT_EQ(costs("rails", {}), (Links{{1, 32}, {2, 32}}));
  EXPECT_EQ(costs("fat_tree", {}), (Links{{1, 32}, {2, 32}}));
  // 9 groups of 4 routers with 2 GPUs each: 72 GPUs, 6 pairs a group, 36 pairs of groups.
  EXPECT_EQ(costs("dragonfly", {}), (Links{{1, 2 * (72 + 54)}, {2, 2 * 36}}));
}

TEST(Generators, SwitchesMayAdd) {
  for (const char* family : {"star", "rails", "fat_tree", "dragonfly"}) {
    const Topology topology = generate_topology(family, {{"reduce", "true"}, {"multicast", "false"}});
    for (const Node& node : topology.nodes()) {
      EXPECT_EQ(node.reduce, node.kind == NodeKind::switch_) << family;
      EXPECT_TRUE(node.kind == NodeKind::gpu || !node.multicast) << family;
    }
  }
}

TEST(Generators, LatticeTakesOneBandwidthADimension) {
  const Topology topology =
      generate_topology("torus", {{"dims", "3x4"}, {"bandwidth_GBps", "50,75"}, {"latency_us", "0"}});
  EXPECT_EQ(link_between(topology, "g0.0", "g2.0").bandwidth_GBps, 50);
  EXPECT_EQ(link_between(topology, "g0.0", "g0.3").bandwidth_GBps, 75);
  EXPECT_EQ(link_between(topology, "g1.2", "g1.3").bandwidth_GBps, 75);
  EXPECT_EQ(link_between(topology, "g1.2", "g2.2").latency_us, 0);
}

TEST(Generators, StarChassisIsTheHybridCubeMesh) {
  const Topology topology = generate_topology("star", {{"intra", "ndv2"}});
  EXPECT_EQ(link_between(topology, "c1g0", "c1g4").bandwidth_GBps, 50);
  EXPECT_EQ(link_between(topology, "c1g7", "c1g3").bandwidth_GBps, 25);
  EXPECT_EQ(link_between(topology, "c1g0", "sw").bandwidth_GBps, 12.5);
  EXPECT_EQ(topology.node(NodeId(8)).chassis, 1);
  double out_of_gpu_1 = 0;  // six NVLinks of 25 GB/s
  for (const LinkId l : topology.out_links(NodeId(1))) out_of_gpu_1 += topology.link(l).bandwidth_GBps;
  EXPECT_EQ(out_of_gpu_1, 150);
}

TEST(Generators, RailsJoinTheSameGpuOfEveryBox) {
  const Topology topology = generate_topology("rails", {{"rails", "2"}, {"multicast", "false"}});
  EXPECT_EQ(link_between(topology, "c0g3", "c0nvswitch").bandwidth_GBps, 300);
  EXPECT_EQ(link_between(topology, "c0g3", "c0nvswitch").latency_us, 0.5);
  EXPECT_EQ(link_between(topology, "c1g3", "rail1").bandwidth_GBps, 25);
  EXPECT_EQ(link_between(topology, "rail0", "c1g6").latency_us, 1.5);
  EXPECT_FALSE(topology.node(link_between(topology, "c1g3", "rail1").dst).multicast);
}

TEST(Generators, RefuseBadValues) {
  const auto refuses = [](const char* family, const Values& values, const std::vector<std::string>& parts) {
    expect_error(ExitCode::usage, parts, [&] { generate_topology(family, values); });
  };
  refuses("moebius", {},
          {"'moebius'", "ring, mesh, torus, hypercube, full, star, rails, fat_tree, dragonfly"});
  refuses("ring", {{"gpu", "4"}}, {"ring has no parameter 'gpu'", "gpus, bandwidth_GBps"});
  refuses("ring", {{"gpus", "1"}}, {"gpus is '1'", "2 or more"});
  refuses("ring", {{"gpus", "-4"}}, {"gpus is '-4'"});
  refuses("ring", {{"gpus", "4x"}}, {"gpus is '4x'"});
  refuses("ring", {{"bidirectional", "yes"}}, {"bidirectional is 'yes'", "true or false"});
  for (const char* bad : {"0", "-1", "nan", "inf", "1e400", "", "5O"}) {
    refuses("full", {{"bandwidth_GBps", bad}},
            {"bandwidth_GBps is '" + std::string(bad) + "'", "more than 0"});
    refuses("mesh", {{"bandwidth_GBps", "50," + std::string(bad)}}, {"more than 0"});
  }
  refuses("full", {{"latency_us", "-0.1"}}, {"latency_us is '-0.1'", "0 or more"});
  refuses("mesh", {{"dims", "8x1"}}, {"dims is '8x1'", "2 or more"});
  refuses("mesh", {{"dims", "8x"}}, {"dims is '8x'"});
  refuses("mesh", {{"dims", "4x4"}, {"bandwidth_GBps", "1,2,3"}}, {"one value or 2"});
  refuses("hypercube", {{"dimensions", "20"}}, {"dimensions is '20'", "1 to 19"});
  refuses("star", {{"intra", "ndv2"}, {"gpus", "4"}}, {"gpus is '4'", "8 where intra is ndv2"});
  refuses("star", {{"intra", "bus"}}, {"full or ring or ndv2 or switch"});
  refuses("star", {{"uplinks", "9"}}, {"uplinks is '9'", "at most gpus (8)"});
  refuses("rails", {{"rails", "9"}}, {"rails is '9'"});
  refuses("fat_tree", {{"leaves", "1"}, {"gpus", "1"}}, {"2 or more"});
}

TEST(Generators, ASpecificationNamesFamilyAndValues) {
  const Topology torus = generate_topology("torus:dims=4x3,bandwidth_GBps=50,75,latency_us=0.5");
  EXPECT_EQ(torus.num_gpus(), 12U);
  std::set<double> bandwidths;
  for (const Link& link : torus.links()) {
    bandwidths.insert(link.bandwidth_GBps);
    EXPECT_EQ(link.latency_us, 0.5);
  }
  EXPECT_EQ(bandwidths, (std::set<double>{50, 75}));
  expect_error(ExitCode::usage, {"'dims' is given twice"}, [] { generate_topology("torus:dims=4,dims=2"); });
  expect_error(ExitCode::usage, {"'4x4' in topology 'torus:4x4' has no value"},
               [] { generate_topology("torus:4x4"); });
}

TEST(Generators, RefuseFabricsBeyondTheCaps) {
  const auto refuses = [](const char* family, const Values& values) {
    expect_error(ExitCode::unavailable, {family}, [&] { generate_topology(family, values); });
  };
  refuses("ring", {{"gpus", "1000001"}});
  refuses("torus", {{"dims", "4294967296x4294967296"}});
  refuses("dragonfly", {{"groups", "1000000"}, {"routers", "1000000"}, {"hosts", "1000000"}});
}

}  // namespace
}  // namespace rondo::test_generators
