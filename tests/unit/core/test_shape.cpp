#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "expect_error.hpp"
#include "rondo/core/subfabric.hpp"
#include "topologies.hpp"

/// Groups, counts and relays: who takes part, with how much, and over which part of the fabric.
namespace rondo::test_shape {
namespace {

std::vector<GpuId> gpus(const std::vector<int>& numbers) {
  std::vector<GpuId> ids;
  for (const int n : numbers) ids.emplace_back(n);
  return ids;
}

CollectiveShape group(const std::vector<int>& numbers, std::vector<double> counts = {}) {
  return {.group = gpus(numbers), .counts = std::move(counts)};
}

/// Of GPU `from` for GPU `to`; sums count for each of their sources.
double bytes_between(const Demand& demand, int from, int to) {
  double bytes = 0;
  for (const Contribution& c : demand.contributions()) {
    const auto sources = c.all_sources();
    const bool is_source = std::ranges::find(sources, GpuId(from)) != sources.end();
    if (is_source && std::ranges::find(c.destinations, GpuId(to)) != c.destinations.end()) bytes += c.bytes;
  }
  return bytes;
}

Demand of(Collective collective, double bytes, const CollectiveShape& shape, int root = 0) {
  return make_demand(collective, bytes, 6, 1, GpuId(root), shape);
}

TEST(Shape, ACollectiveOfAGroupIsThatOfItsMembersAlone) {
  for (const CollectiveRow& row : collective_rows()) {
    if (row.source == nullptr) continue;
    const Collective collective(row);
    const Demand alone = make_demand(collective, 120, 3, 1, GpuId(row.has_root ? 1 : 0));
    const Demand inside = of(collective, 120, group({1, 3, 4}), row.has_root ? 3 : 0);
    ASSERT_EQ(inside.contributions().size(), alone.contributions().size()) << row.name;
    EXPECT_EQ(inside.members(), gpus({1, 3, 4}));
    for (const auto& [here, there] : {std::pair(0, 1), std::pair(1, 3), std::pair(2, 4)}) {
      for (const auto& [to_here, to_there] : {std::pair(0, 1), std::pair(1, 3), std::pair(2, 4)}) {
        EXPECT_EQ(bytes_between(inside, there, to_there), bytes_between(alone, here, to_here)) << row.name;
      }
      EXPECT_EQ(bytes_between(inside, 0, there), 0) << row.name;
      EXPECT_EQ(bytes_between(inside, there, 5), 0) << row.name;
    }
    EXPECT_FALSE(mismatch_with_collective(inside)) << row.name;
    EXPECT_EQ(inside.kind(), alone.kind()) << row.name;
  }
}

TEST(Shape, CountsAreThoseOfMpi) {
  const CollectiveShape three = group({0, 2, 5}, {10, 0, 30});
  const Demand gathered = of(Collective::allgather, 40, three);
  EXPECT_EQ(bytes_between(gathered, 0, 5), 10);
  EXPECT_EQ(bytes_between(gathered, 5, 2), 30);
  EXPECT_EQ(bytes_between(gathered, 2, 0), 0);  // absent
  EXPECT_EQ(gathered.contributions().size(), 2U);
  const Demand sums = of(Collective::reduce_scatter, 40, three);
  EXPECT_EQ(bytes_between(sums, 2, 5), 30);
  EXPECT_EQ(bytes_between(sums, 5, 2), 0);
  EXPECT_EQ(bytes_between(of(Collective::scatter, 40, three, 5), 5, 0), 10);
  EXPECT_EQ(bytes_between(of(Collective::scatter, 40, three, 0), 0, 5), 30);
  EXPECT_EQ(bytes_between(of(Collective::gather, 40, three, 0), 5, 0), 30);
  // A row a sender; what a member keeps moves nowhere.
  const CollectiveShape pairs = group({0, 2, 5}, {9, 1, 2, 3, 9, 0, 4, 5, 9});
  const Demand exchanged = of(Collective::alltoall, size_of_counts(Collective::alltoall, pairs, 6), pairs);
  EXPECT_EQ(exchanged.size_bytes(), 18);  // GPU 5 sends 4 + 5 and keeps 9
  EXPECT_EQ(bytes_between(exchanged, 0, 2), 1);
  EXPECT_EQ(bytes_between(exchanged, 2, 0), 3);
  EXPECT_EQ(bytes_between(exchanged, 2, 5), 0);
  EXPECT_EQ(exchanged.contributions().size(), 5U);
  EXPECT_FALSE(mismatch_with_collective(exchanged));
}

TEST(Shape, EqualCountsAskForWhatNoCountsAskFor) {
  for (const Collective collective : {Collective::allgather, Collective::alltoall, Collective::reduce_scatter,
                                      Collective::scatter, Collective::gather}) {
    const std::vector<double> counts(collective->num_counts(6), 20);
    const CollectiveShape shape{.counts = counts};
    EXPECT_EQ(size_of_counts(collective, shape, 6), 120);
    EXPECT_FALSE(difference(make_demand(collective, 120, 6, 1), of(collective, 120, shape)))
        << to_string(collective);
  }
}

TEST(Shape, GrowsWithTheSize) {
  const Demand grown = of(Collective::allgather, 40, group({0, 2, 5}, {10, 0, 30})).with_size(80);
  EXPECT_EQ(bytes_between(grown, 5, 0), 60);
  EXPECT_EQ(grown.shape().counts, (std::vector<double>{20, 0, 60}));
  EXPECT_FALSE(mismatch_with_collective(grown));
}

TEST(Shape, IsRefusedWithValueAndReason) {
  const auto refuses = [](ExitCode code, const std::vector<std::string>& parts,
                          const std::function<void()>& action) { expect_error(code, parts, action); };
  const auto allgather = [](const CollectiveShape& shape) { of(Collective::allgather, 10, shape); };
  refuses(ExitCode::bad_data, {"GPU 6", "0 to 5"}, [&] { allgather(group({0, 6})); });
  refuses(ExitCode::bad_data, {"GPU 2 twice"}, [&] { allgather(group({0, 2, 2})); });
  refuses(ExitCode::bad_data, {"GPU 1 after GPU 3", "ascending"}, [&] { allgather(group({3, 1})); });
  refuses(ExitCode::bad_data, {"GPU 4 alone"}, [&] { allgather(group({4})); });
  refuses(ExitCode::bad_data, {"counts are 2", "takes 3"}, [&] { allgather(group({0, 1, 2}, {1, 2})); });
  refuses(ExitCode::bad_data, {"count 1 is -2"}, [&] { allgather(group({0, 1, 2}, {1, -2, 3})); });
  refuses(ExitCode::bad_data, {"counts are 0"}, [&] { allgather(group({0, 1}, {0, 0})); });
  refuses(ExitCode::bad_data, {"broadcast has one buffer"}, [&] {
    of(Collective::broadcast, 10, {.counts = {1, 2, 3, 4, 5, 6}});
  });
  refuses(ExitCode::bad_data, {"relay is none", "every GPU"}, [&] { allgather({.relays = false}); });
  refuses(ExitCode::usage, {"root is GPU 0", "1-3"}, [&] {
    of(Collective::broadcast, 10, group({1, 2, 3}), 0);
  });
  refuses(ExitCode::bad_data, {"a destination is GPU 5", "0-2,4"}, [&] {
    Demand(Collective::custom, 10, 6, {{.origin = GpuId{0}, .bytes = 10, .destinations = gpus({1, 5})}}, 1,
           group({0, 1, 2, 4}));
  });
  refuses(ExitCode::bad_data, {"a source is GPU 3"}, [&] {
    Demand(Collective::custom, 10, 6, {{.origin = GpuId{3}, .bytes = 10, .destinations = gpus({1})}}, 1,
           group({0, 1, 2, 4}));
  });
}

TEST(Shape, DifferencesAreNamed) {
  const Demand asked = of(Collective::allgather, 40, group({0, 2, 5}, {10, 0, 30}));
  std::vector<Contribution> halves = asked.contributions();
  halves.push_back(halves.front());
  halves.front().bytes = 4;
  halves.back().bytes = 6;
  EXPECT_FALSE(difference(asked, Demand(Collective::allgather, 40, 6, halves, 1, asked.shape())));
  halves.back().bytes = 7;
  const auto found = difference(asked, Demand(Collective::allgather, 40, 6, halves, 1, asked.shape()));
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, "11 bytes go from GPU 0 to all others; allgather of 40 bytes asks for 10");
}

/// A ring of six with a switch between GPUs 0 and 1, and what is left for GPUs 0, 1 and 2.
std::shared_ptr<const Topology> ring_with_switch() {
  std::vector<Node> nodes(6);
  nodes.push_back(network_switch());
  std::vector<Link> links;
  for (int g = 5; g >= 0; --g) {
    links.push_back(link(g, (g + 1) % 6));
    links.push_back(link((g + 1) % 6, g));
  }
  links.push_back(link(0, 6, 2));
  links.push_back(link(6, 1, 2));
  return fabric(nodes, links, {{"nic", {LinkId{10}, LinkId{0}}, 1}});
}

TEST(Subfabric, KeepsMembersAndTheLinksBetweenThem) {
  const auto whole = ring_with_switch();
  CollectiveShape shape = group({0, 1, 2});
  shape.relays = false;
  const Demand demand = of(Collective::allgather, 30, shape);
  const Subfabric part(*whole, demand);
  EXPECT_EQ(part.topology().num_gpus(), 3U);
  EXPECT_EQ(part.topology().num_nodes(), 4U);  // the switch, too
  EXPECT_EQ(part.topology().num_links(), 6U);
  ASSERT_EQ(part.topology().shared_bandwidth().size(), 1U);
  EXPECT_EQ(part.topology().shared_bandwidth().front().links.size(), 1U);
  EXPECT_EQ(part.demand_of(demand).kind(), DemandKind::multicast);
  EXPECT_TRUE(part.demand_of(demand).shape().is_plain());
  for (std::size_t l = 0; l < part.topology().num_links(); ++l) {
    const std::vector<Send> there = part.sends_of_whole({Send{.chunk = ChunkId{0}, .link = LinkId(l)}});
    EXPECT_EQ(whole->link(there.front().link).bandwidth_GBps, part.topology().link(LinkId(l)).bandwidth_GBps);
    EXPECT_EQ(part.sends_inside(there).front().link, LinkId(l));
  }
  expect_error(ExitCode::bad_data, {"link 0", "0-2"},
               [&] { part.sends_inside({Send{.chunk = ChunkId{0}, .link = LinkId{0}}}); });
}

TEST(Subfabric, ABoundWithoutRelaysIsThatOfThePart) {
  const auto whole = ring_with_switch();
  CollectiveShape shape = group({0, 1, 2});
  shape.relays = false;
  const Demand demand = of(Collective::allgather, 3 * kMB, shape);
  const Subfabric part(*whole, demand);
  const std::vector<Certificate> inside{
      LatencyCertificate{GpuId{0}, GpuId{2}}, CutCertificate{{NodeId{2}}, kMB},
      CutCertificate{{NodeId{0}, NodeId{1}, NodeId{3}}, 2 * kMB},
      KnowledgeCertificate{GpuId{1}, gpus({0, 2}), {{NodeId{1}, NodeId{3}}}, {0, 1}},
      TimeCutCertificate{GpuId{1}, {1001, 1001, 0, 1001}}};
  for (const Certificate& certificate : inside) {
    const Certificate there = part.certificate_of_whole(certificate);
    EXPECT_DOUBLE_EQ(bound_of(*whole, demand, there),
                     bound_of(part.topology(), part.demand_of(demand), certificate));
  }
  // GPU 2 leads to GPU 1 alone; with relays to GPU 3 as well.
  EXPECT_DOUBLE_EQ(sound_bound_of(*whole, demand, CutCertificate{{NodeId{2}}, kMB}), 1002);
  EXPECT_LT(sound_bound_of(*whole, of(Collective::allgather, 3 * kMB, group({0, 1, 2})),
                           CutCertificate{{NodeId{2}}, kMB}),
            700);
  EXPECT_DOUBLE_EQ(bound_of(*whole, demand, part.certificate_of_whole(inside.back())), 1001);
  for (const auto& [gpu, times] : {std::pair{4, 7}, {1, 4}}) {
    const TimeCutCertificate other{GpuId(gpu), std::vector<double>(static_cast<std::size_t>(times), 1)};
    expect_error(ExitCode::bad_data, {gpu == 4 ? "GPU 4" : "4 times"},
                 [&] { bound_of(*whole, demand, other); });
  }
  expect_error(ExitCode::bad_data, {"GPU 4"}, [&] {
    bound_of(*whole, demand, LatencyCertificate{GpuId{0}, GpuId{4}});
  });
}

TEST(Subfabric, SourcesThatCountAreThoseOfThePart) {
  const auto whole = ring_with_switch();
  CollectiveShape shape = group({2, 3, 4});
  shape.relays = false;
  const Demand demand = of(Collective::allreduce, kMB, shape);
  const Subfabric part(*whole, demand);
  // GPU 2 gets what GPUs 3 and 4 have, 1000 us each, over one link of 1 us, both in one byte from 1 us on:
  // 1 + 2 (T - 1 - 1) = 2000, of which this is a little less.
  const TimeCutCertificate inside{.gpu = GpuId{0}, .alpha_us = {1001.4, 0, 0}, .sources = gpus({1, 2})};
  const Certificate there = part.certificate_of_whole(inside);
  EXPECT_EQ(std::get<TimeCutCertificate>(there).sources, gpus({3, 4}));
  EXPECT_DOUBLE_EQ(bound_of(*whole, demand, there), 1001.4);
  TimeCutCertificate outside = std::get<TimeCutCertificate>(there);
  outside.sources = gpus({3, 5});
  expect_error(ExitCode::bad_data, {"GPU 5"}, [&] { bound_of(*whole, demand, outside); });
}

TEST(Subfabric, AGroupThatRelaysWouldHaveToJoinIsRefused) {
  const auto ring = generated("ring", {{"gpus", "6"}});
  CollectiveShape shape = group({0, 3});
  EXPECT_NO_THROW(check_reachable(*ring, of(Collective::allgather, 10, shape)));
  shape.relays = false;
  expect_error(ExitCode::bad_data, {"GPU 3", "GPU 0", "relay is none", "let others relay"},
               [&] { check_reachable(*ring, of(Collective::allgather, 10, shape)); });
}

}  // namespace
}  // namespace rondo::test_shape
