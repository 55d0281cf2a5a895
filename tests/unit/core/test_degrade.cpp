#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <span>

#include "expect_error.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/generators.hpp"
#include "rondo/core/random.hpp"
#include "rondo/core/switch_peers.hpp"

namespace rondo::test_degrade {
namespace {

std::vector<double> bandwidths(const Topology& topology) {
  std::vector<double> result;
  for (const Link& link : topology.links()) result.push_back(link.bandwidth_GBps);
  return result;
}

std::ptrdiff_t degraded_links(const Topology& topology) {
  return std::count_if(topology.links().begin(), topology.links().end(),
                       [](const Link& link) { return link.bandwidth_GBps == 20; });
}

TEST(Degrade, ChangesTheFractionOfTheLinks) {
  const Topology ring = generate_topology("ring", {{"gpus", "8"}});  // 16 links of 50 GB/s
  EXPECT_EQ(degraded_links(degrade(ring, 0.25, 0.4, 1)), 4);
  EXPECT_EQ(degraded_links(degrade(ring, 1, 0.4, 1)), 16);
  EXPECT_EQ(degraded_links(degrade(ring, 0.001, 0.4, 1)), 1);
  EXPECT_EQ(degraded_links(degrade(ring, 0, 0.4, 1)), 0);
  EXPECT_EQ(degrade(ring, 0.25, 0.4, 1).name(), "ring-8-degraded");
  EXPECT_EQ(degrade(ring, 0, 0.4, 1).name(), "ring-8");
}

TEST(Degrade, KeepsMessageCostsAndStepsInProportion) {
  TopologyData data = generate_topology("ring", {{"gpus", "4"}, {"message_us", "1.5"}}).data();
  data.links[2].bandwidth_steps = {{0, 50}, {10, 0}, {20, 100}};
  const Topology slower = degrade(Topology(std::move(data)), 1, 0.5, 1);
  for (const Link& link : slower.links()) {
    EXPECT_EQ(link.message_us, 1.5);
    EXPECT_EQ(link.bandwidth_GBps, 25);
  }
  EXPECT_EQ(slower.links()[2].bandwidth_steps, (std::vector<BandwidthStep>{{0, 25}, {10, 0}, {20, 50}}));
}

TEST(WithoutLinks, TheOthersMoveUp) {
  TopologyData data = generate_topology("ring", {{"gpus", "3"}}).data();
  for (std::size_t l = 0; l < data.links.size(); ++l)
    data.links[l].bandwidth_GBps = static_cast<double>(l + 1);
  const auto joins = [&](std::size_t l, int a, int b) {
    return data.links[l].src.value == a && data.links[l].dst.value == b;
  };
  std::vector<double> others;
  std::vector<LinkId> gone;
  for (std::size_t l = 0; l < data.links.size(); ++l) {
    if (joins(l, 0, 1) || joins(l, 1, 0)) {
      gone.emplace_back(l);
    } else {
      others.push_back(data.links[l].bandwidth_GBps);
    }
  }
  ASSERT_EQ(gone.size(), 2);
  const LinkId last{data.links.size() - 1};
  data.shared_bandwidth = {{"both", gone, 1}, {"one", {gone.front(), last}, 1}};
  const Topology less = without_links_between(Topology(data), NodeId{1}, NodeId{0});
  EXPECT_EQ(bandwidths(less), others);
  ASSERT_EQ(less.shared_bandwidth().size(), 1);
  EXPECT_EQ(less.shared_bandwidth()[0].name, "one");
  EXPECT_EQ(less.shared_bandwidth()[0].links, std::vector{LinkId{others.size() - 1}});
  expect_error(ExitCode::usage, {"no link joins"},
               [&] { without_links_between(less, NodeId{0}, NodeId{1}); });
}

TEST(Degrade, DependsOnTheSeedAlone) {
  const Topology torus = generate_topology("torus", {{"dims", "8x8"}});
  EXPECT_EQ(bandwidths(degrade(torus, 0.1, 0.5, 7)), bandwidths(degrade(torus, 0.1, 0.5, 7)));
  EXPECT_NE(bandwidths(degrade(torus, 0.1, 0.5, 7)), bandwidths(degrade(torus, 0.1, 0.5, 8)));
}

TEST(Degrade, RefusesValuesOutOfRange) {
  const Topology ring = generate_topology("ring", {});
  for (const double fraction : {-0.1, 1.1, std::numeric_limits<double>::quiet_NaN()}) {
    expect_error(ExitCode::usage, {"fraction is", "0 to 1"}, [&] { degrade(ring, fraction, 0.5, 1); });
  }
  for (const double factor : {0.0, -1.0, 1.5, std::numeric_limits<double>::quiet_NaN()}) {
    expect_error(ExitCode::usage, {"factor", "at most 1"}, [&] { degrade(ring, 0.5, factor, 1); });
  }
}

TEST(Random, IsTheStandardsMersenneTwister) {
  Random random(5489);  // the standard fixes the 10000th number of the default seed
  std::uint64_t value = 0;
  for (int i = 0; i < 10000; ++i) value = random.next();
  EXPECT_EQ(value, 9981545732273789042ULL);
}

TEST(Random, StaysInRangeAndMeetsEveryNumber) {
  Random random(1);
  std::vector<int> seen(5, 0);
  for (int i = 0; i < 1000; ++i) {
    ++seen.at(random.below(5));
    const double unit = random.unit();
    EXPECT_GE(unit, 0);
    EXPECT_LT(unit, 1);
  }
  for (const int count : seen) EXPECT_NEAR(count, 200, 60);
}

TEST(Random, ShufflesAreRepeatablePermutations) {
  std::vector<int> first(20);
  std::iota(first.begin(), first.end(), 0);
  std::vector<int> second = first;
  const std::vector<int> sorted = first;
  Random(3).shuffle(std::span(first));
  Random(3).shuffle(std::span(second));
  EXPECT_EQ(first, second);
  EXPECT_NE(first, sorted);
  std::sort(first.begin(), first.end());
  EXPECT_EQ(first, sorted);
}

TEST(SwitchPeers, DistancesAreDigits) {
  EXPECT_EQ(peer_distances(8, 1), (std::vector{1}));
  EXPECT_EQ(peer_distances(8, 3), (std::vector{1, 2, 4}));
  EXPECT_EQ(peer_distances(8, 2), (std::vector{1, 3}));
  EXPECT_EQ(peer_distances(9, 2), (std::vector{1, 3}));
  EXPECT_EQ(peer_distances(16, 2), (std::vector{1, 4}));
  EXPECT_EQ(peer_distances(8, 5), (std::vector{1, 2, 3, 4, 5}));
  EXPECT_EQ(peer_distances(4, 9), (std::vector{1, 2, 3}));
}

TEST(SwitchPeers, EachGpuSendsOverASwitchToSoMany) {
  const Topology rails = generate_topology("rails", {{"boxes", "2"}});
  const Topology left = with_switch_peers(rails, 3);
  EXPECT_EQ(left.name(), "rails-2x8-8+peers=3");
  // 16 senders into two boxes' switches; two GPUs on each of 8 rails have one peer anyway.
  EXPECT_EQ(left.num_nodes(), 16U + 16 + 8);
  EXPECT_EQ(left.num_links(), 16U + 16 * 3 + 32);
  EXPECT_EQ(left.shared_bandwidth().size(), 16U);  // of each GPU what it hears within the box
  for (const SharedBandwidth& group : left.shared_bandwidth()) {
    EXPECT_EQ(group.links.size(), 3U);
    EXPECT_EQ(group.bandwidth_GBps, 300);
  }
  for (std::size_t g = 0; g < 16; ++g) {
    EXPECT_EQ(left.node_of(GpuId(g)), rails.node_of(GpuId(g)));
    std::vector<int> peers;
    for (const LinkId up : left.out_links(left.node_of(GpuId(g)))) {
      for (const LinkId down : left.out_links(left.link(up).dst)) {
        const int peer = left.gpu_of(left.link(down).dst).value;
        if (peer / 8 == static_cast<int>(g) / 8 && peer != static_cast<int>(g)) peers.push_back(peer % 8);
      }
    }
    std::ranges::sort(peers);
    const int i = static_cast<int>(g) % 8;
    std::vector<int> expected{(i + 1) % 8, (i + 2) % 8, (i + 4) % 8};
    std::ranges::sort(expected);
    EXPECT_EQ(peers, expected) << g;
  }
  EXPECT_EQ(with_switch_peers(rails, 7).num_links(), rails.num_links());
}

TEST(SwitchPeers, WhatCannotBeRestrictedIsNamed) {
  const auto refused = [](const Topology& topology) -> std::string {
    try {
      with_switch_peers(topology, 1);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(refused(generate_topology("ring", {{"gpus", "4"}})).find("has none"), std::string::npos);
  EXPECT_NE(refused(generate_topology("fat_tree", {})).find("leaf0) is linked with a switch"),
            std::string::npos);
  EXPECT_NE(refused(generate_topology("rails", {{"reduce", "true"}})).find("adds"), std::string::npos);
}

}  // namespace
}  // namespace rondo::test_degrade
