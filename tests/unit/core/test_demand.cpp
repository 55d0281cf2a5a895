#include <gtest/gtest.h>

#include <limits>

#include "expect_error.hpp"
#include "rondo/core/collective.hpp"
#include "rondo/core/generators.hpp"

namespace rondo::test_demand {
namespace {

std::vector<GpuId> gpus(std::initializer_list<int> numbers) {
  std::vector<GpuId> result;
  for (const int g : numbers) result.push_back(GpuId(g));
  return result;
}

Contribution contribution(int origin, double bytes, std::initializer_list<int> destinations) {
  return {.origin = GpuId(origin), .bytes = bytes, .destinations = gpus(destinations)};
}

TEST(Collective, NamesRoundTrip) {
  for (const CollectiveRow& row : collective_rows())
    EXPECT_EQ(to_string(parse_collective(row.name)), row.name);
  expect_error(ExitCode::usage, {"'scan'", "allgather, alltoall"}, [] { parse_collective("scan"); });
}

TEST(Collective, MayHaveAnotherSpelling) {
  ASSERT_TRUE(find_collective("reducescatter").has_value());
  EXPECT_EQ(find_collective("reducescatter"), find_collective("reduce_scatter"));
  EXPECT_EQ(find_collective(""), std::nullopt);
  expect_error(ExitCode::usage, {"'custom'", "demand file"},
               [] { make_demand(Collective::custom, 1, 4, 1); });
}

// Three GPUs, a buffer of 30 bytes: every GPU has a part in every sum.
TEST(MakeDemand, SumsOfAllGpus) {
  const Demand parts = make_demand(Collective::reduce_scatter, 30, 3, 2);
  EXPECT_EQ(parts.kind(), DemandKind::reduction);
  EXPECT_EQ(parts.num_chunks(), 6U);
  EXPECT_EQ(parts.bytes(ChunkId{0}), 5);
  EXPECT_EQ(parts.contributions()[2].sources, gpus({0, 1, 2}));
  EXPECT_EQ(parts.contributions()[2].destinations, gpus({2}));
  const Demand rooted = make_demand(Collective::reduce, 30, 3, 1, GpuId{1});
  EXPECT_EQ(rooted.contributions().front().destinations, gpus({1}));
  EXPECT_EQ(root_of(rooted), GpuId{1});
  const Demand all = make_demand(Collective::allreduce, 30, 3, 3);
  EXPECT_EQ(all.kind(), DemandKind::all_reduction);
  EXPECT_EQ(all.contributions().front().destinations, gpus({0, 1, 2}));
  EXPECT_EQ(all.with_size(60).bytes(ChunkId{0}), 20);
  EXPECT_EQ(mismatch_with_collective(all), std::nullopt);
}

TEST(Demand, RefusesSumsThatAreNone) {
  const auto demand = [](Contribution sum) {
    sum.reduce = true;
    return Demand(Collective::custom, sum.bytes, 3, {sum}, 1);
  };
  Contribution sum = contribution(0, 8, {1});
  expect_error(ExitCode::bad_data, {"two sources"}, [&] { demand(sum); });
  sum.sources = gpus({0, 2, 2});
  expect_error(ExitCode::bad_data, {"source 2", "twice"}, [&] { demand(sum); });
  sum.sources = gpus({0, 2});
  sum.held = {{GpuId{1}, gpus({1})}};
  expect_error(ExitCode::bad_data, {"GPU 1 holds"}, [&] { demand(sum); });
  sum.held.clear();
  sum.source_ready_us = {1};
  expect_error(ExitCode::bad_data, {"1 ready times for 2 sources"}, [&] { demand(sum); });
}

TEST(PartTable, SaysWherePartsStand) {
  const auto places = [](Collective collective, int from, int to) {
    const auto found = PartTable(collective, 3, GpuId(1)).find(GpuId(from), GpuId(to));
    return found ? std::pair(found->input_part, found->output_part) : std::pair(-1, -1);
  };
  EXPECT_EQ(places(Collective::allgather, 2, 1), std::pair(0, 2));
  EXPECT_EQ(places(Collective::alltoall, 2, 1), std::pair(1, 2));
  EXPECT_EQ(places(Collective::broadcast, 1, 0), std::pair(0, 0));
  EXPECT_EQ(places(Collective::broadcast, 0, 2), std::pair(-1, -1));
  EXPECT_EQ(places(Collective::scatter, 1, 2), std::pair(2, 0));
  EXPECT_EQ(places(Collective::gather, 1, 1), std::pair(0, 1));
  EXPECT_EQ(places(Collective::gather, 0, 2), std::pair(-1, -1));
  expect_error(ExitCode::bad_data, {"GPU 0 has nothing for GPU 2 in gather"},
               [] { PartTable(Collective::gather, 3, GpuId(1)).between(GpuId(0), GpuId(2)); });
}

TEST(MakeDemand, AllGatherOfThree) {
  const Demand demand = make_demand(Collective::allgather, 300, 3, 2);
  ASSERT_EQ(demand.contributions().size(), 3U);
  EXPECT_EQ(demand.num_chunks(), 6U);
  EXPECT_EQ(demand.origin(ChunkId(3)), GpuId(1));
  EXPECT_EQ(demand.bytes(ChunkId(3)), 50);
  EXPECT_EQ(demand.contributions()[1].destinations, gpus({0, 2}));
  EXPECT_FALSE(demand.is_unicast());
  EXPECT_EQ(demand.uniform_chunk_bytes(), 50);
  EXPECT_EQ(demand.with_chunks(4).uniform_chunk_bytes(), 25);
}

TEST(MakeDemand, AllToAllOfThree) {
  const Demand demand = make_demand(Collective::alltoall, 300, 3, 1);
  const std::vector<std::pair<int, int>> pairs = {{0, 1}, {0, 2}, {1, 0}, {1, 2}, {2, 0}, {2, 1}};
  ASSERT_EQ(demand.contributions().size(), pairs.size());
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    EXPECT_EQ(demand.contributions()[i].origin, GpuId(pairs[i].first));
    EXPECT_EQ(demand.contributions()[i].destinations, gpus({pairs[i].second}));
    EXPECT_EQ(demand.contributions()[i].bytes, 100);
  }
  EXPECT_TRUE(demand.is_unicast());
}

TEST(MakeDemand, RootedCollectivesOfFour) {
  const Demand broadcast = make_demand(Collective::broadcast, 400, 4, 1, GpuId(2));
  ASSERT_EQ(broadcast.contributions().size(), 1U);
  EXPECT_EQ(broadcast.contributions()[0].bytes, 400);
  EXPECT_EQ(broadcast.contributions()[0].destinations, gpus({0, 1, 3}));

  const Demand scatter = make_demand(Collective::scatter, 400, 4, 1, GpuId(2));
  const Demand gather = make_demand(Collective::gather, 400, 4, 1, GpuId(2));
  const std::vector<int> others = {0, 1, 3};
  ASSERT_EQ(scatter.contributions().size(), 3U);
  ASSERT_EQ(gather.contributions().size(), 3U);
  for (std::size_t i = 0; i < others.size(); ++i) {
    EXPECT_EQ(scatter.contributions()[i].origin, GpuId(2));
    EXPECT_EQ(scatter.contributions()[i].destinations, gpus({others[i]}));
    EXPECT_EQ(gather.contributions()[i].origin, GpuId(others[i]));
    EXPECT_EQ(gather.contributions()[i].destinations, gpus({2}));
    EXPECT_EQ(scatter.contributions()[i].bytes, 100);
    EXPECT_EQ(gather.contributions()[i].bytes, 100);
  }
}

TEST(MakeDemand, RefusesBadArguments) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double size : {0.0, -1.0, infinity, std::numeric_limits<double>::quiet_NaN()}) {
    expect_error(ExitCode::usage, {"size is", "positive and finite"},
                 [&] { make_demand(Collective::allgather, size, 4, 1); });
  }
  expect_error(ExitCode::usage, {"chunks is 0"}, [] { make_demand(Collective::allgather, 1, 4, 0); });
  expect_error(ExitCode::usage, {"root is 4", "0 to 3"},
               [] { make_demand(Collective::broadcast, 1, 4, 1, GpuId(4)); });
  expect_error(ExitCode::usage, {"root is -1"}, [] { make_demand(Collective::gather, 1, 4, 1, GpuId(-1)); });
  expect_error(ExitCode::usage, {"allgather has no root"},
               [] { make_demand(Collective::allgather, 1, 4, 1, GpuId(1)); });
  expect_error(ExitCode::usage, {"custom", "demand file"}, [] { make_demand(Collective::custom, 1, 4, 1); });
  expect_error(ExitCode::bad_data, {"at least two GPUs"},
               [] { make_demand(Collective::allgather, 1, 1, 1); });
}

TEST(MakeDemand, RefusesWhatIsBeyondTheCaps) {
  expect_error(ExitCode::unavailable, {"16777216 chunks"},
               [] { make_demand(Collective::broadcast, 1, 2, 16777217); });
  expect_error(ExitCode::unavailable, {"100000000 chunks x destinations"},
               [] { make_demand(Collective::allgather, 1, 1'000'000, 1); });
  EXPECT_EQ(make_demand(Collective::broadcast, 1, 2, 16777216).num_chunks(), 16777216U);
}

void expect_refused(const std::vector<std::string>& parts, const Contribution& bad) {
  expect_error(ExitCode::bad_data, parts, [&] {
    Demand demand(Collective::custom, 20, 3, {contribution(0, 10, {1}), bad}, 1);
  });
}

TEST(Demand, RefusesBadContributions) {
  expect_refused({"contribution 1: the origin is GPU 3", "0 to 2"}, contribution(3, 10, {1}));
  expect_refused({"contribution 1: a destination is GPU -1"}, contribution(0, 10, {-1}));
  expect_refused({"contribution 1: nobody wants it"}, contribution(0, 10, {}));
  expect_refused({"contribution 1: destination 2 is named twice"}, contribution(0, 10, {2, 1, 2}));
  expect_refused({"contribution 1: GPU 0 is origin and destination"}, contribution(0, 10, {0}));
  for (const double bytes : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN()}) {
    expect_refused({"contribution 1: bytes is"}, contribution(0, bytes, {1}));
  }
  Contribution late = contribution(0, 10, {1});
  late.ready_us = -1;
  expect_refused({"contribution 1: ready_us is -1"}, late);
}

TEST(Demand, RefusesEmptyAndZeroChunks) {
  expect_error(ExitCode::bad_data, {"empty"}, [] { Demand demand(Collective::custom, 1, 2, {}, 1); });
  expect_error(ExitCode::bad_data, {"chunks is 0"},
               [] { Demand demand(Collective::custom, 1, 2, {contribution(0, 1, {1})}, 0); });
}

TEST(Demand, SortsDestinationsAndSeesUnequalChunks) {
  const Demand demand(Collective::custom, 30, 3, {contribution(0, 10, {2, 1}), contribution(1, 20, {0})}, 1);
  EXPECT_EQ(demand.contributions()[0].destinations, gpus({1, 2}));
  EXPECT_FALSE(demand.uniform_chunk_bytes().has_value());
}

TEST(Mismatch, AcceptsWhatMakeDemandMakes) {
  for (const Collective c : {Collective::allgather, Collective::alltoall}) {
    EXPECT_EQ(mismatch_with_collective(make_demand(c, 1e9 / 3, 4, 7)), std::nullopt);
  }
  for (const Collective c : {Collective::broadcast, Collective::scatter, Collective::gather}) {
    EXPECT_EQ(mismatch_with_collective(make_demand(c, 1e9 / 3, 4, 7, GpuId(3))), std::nullopt);
  }
}

TEST(Mismatch, SumsChunksThatAreContributionsOfTheirOwn) {
  std::vector<Contribution> chunks;
  for (const int origin : {0, 1, 0, 1, 0, 1}) chunks.push_back(contribution(origin, 0.1, {1 - origin}));
  EXPECT_EQ(mismatch_with_collective(Demand(Collective::allgather, 0.6, 2, chunks, 1)), std::nullopt);
  EXPECT_EQ(mismatch_with_collective(Demand(Collective::alltoall, 0.6, 2, chunks, 1)), std::nullopt);
}

/// The AllGather of 3 GPUs and 300 bytes after one change.
template <class Change>
std::string mismatch_after(Collective collective, Change change) {
  std::vector<Contribution> contributions = make_demand(collective, 300, 3, 1).contributions();
  change(contributions);
  return mismatch_with_collective(Demand(collective, 300, 3, contributions, 1)).value_or("");
}

TEST(Mismatch, NamesWhatDiffers) {
  using Contributions = std::vector<Contribution>;
  EXPECT_EQ(mismatch_after(Collective::allgather, [](Contributions& c) { c[1].bytes = 101; }),
            "101 bytes go from GPU 1 to all others; allgather of 300 bytes asks for 100");
  EXPECT_EQ(mismatch_after(Collective::allgather, [](Contributions& c) { c.pop_back(); }),
            "0 bytes go from GPU 2 to all others; allgather of 300 bytes asks for 100");
  EXPECT_EQ(mismatch_after(Collective::allgather, [](Contributions& c) { c[0].destinations.pop_back(); }),
            "0 bytes go from GPU 0 to all others; allgather of 300 bytes asks for 100");
  EXPECT_EQ(mismatch_after(Collective::alltoall, [](Contributions& c) { c[0].destinations = {GpuId(2)}; }),
            "0 bytes go from GPU 0 to GPU 1; alltoall of 300 bytes asks for 100");
  EXPECT_EQ(
      mismatch_after(Collective::scatter, [](Contributions& c) { c.push_back(contribution(1, 5, {2})); }),
      "5 bytes go from GPU 1 to GPU 2; scatter asks for none");
}

TEST(Mismatch, ToleratesRoundingOnly) {
  const auto relative = [](double change) {
    return mismatch_after(Collective::broadcast,
                          [&](std::vector<Contribution>& c) { c[0].bytes *= 1 + change; });
  };
  EXPECT_EQ(relative(0.9e-9), "");
  EXPECT_NE(relative(2e-9), "");
}

TEST(Mismatch, CustomDemandHasToSumToItsSize) {
  const std::vector<Contribution> chunks = {contribution(0, 10, {1, 2}), contribution(2, 5, {0})};
  EXPECT_EQ(mismatch_with_collective(Demand(Collective::custom, 15, 3, chunks, 1)), std::nullopt);
  EXPECT_NE(mismatch_with_collective(Demand(Collective::custom, 20, 3, chunks, 1)), std::nullopt);
}

/// GPUs 0 -> 1 -> 2, one way.
Topology one_way_line() {
  TopologyData data;
  data.name = "line";
  data.nodes.resize(3);
  data.links = {{NodeId(0), NodeId(1), 1, 0}, {NodeId(1), NodeId(2), 1, 0}};
  return Topology(data);
}

TEST(CheckReachable, GpusRelay) {
  check_reachable(one_way_line(), make_demand(Collective::broadcast, 1, 3, 1, GpuId(0)));
  check_reachable(generate_topology("ring", {{"bidirectional", "false"}, {"gpus", "3"}}),
                  make_demand(Collective::alltoall, 1, 3, 1));
}

TEST(CheckReachable, NamesTheGpus) {
  expect_error(ExitCode::bad_data, {"GPU 0 (node 0) needs data of GPU 1 (node 1)", "'line'"},
               [] { check_reachable(one_way_line(), make_demand(Collective::allgather, 1, 3, 1)); });
  expect_error(ExitCode::bad_data, {"the demand is for 4 GPUs", "has 3"},
               [] { check_reachable(one_way_line(), make_demand(Collective::allgather, 1, 4, 1)); });
}

TEST(CheckReachable, IsQuickForAThousandGpus) {
  const Topology torus = generate_topology("torus", {{"dims", "32x32"}});
  const Demand demand = make_demand(Collective::allgather, 1e9, 1024, 16);
  check_reachable(torus, demand);
  EXPECT_EQ(mismatch_with_collective(demand), std::nullopt);
}

}  // namespace
}  // namespace rondo::test_demand
