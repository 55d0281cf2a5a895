#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "expect_error.hpp"
#include "rondo/core/subfabric.hpp"
#include "rondo/core/verify.hpp"
#include "rondo/pipeline/bound.hpp"
#include "rondo/pipeline/synthesize.hpp"
#include "topologies.hpp"

/// Collectives of a group and by counts, through the whole main job.
namespace rondo::test_shapes {
namespace {

SolveOptions quick() {
  SolveOptions options;
  options.improve_work = 1e4;
  return options;
}

SynthesisResult solved(const std::shared_ptr<const Topology>& topology, const Demand& demand,
                       const SolveOptions& options = quick()) {
  SynthesisResult result = synthesize({topology, demand, options}, {*make_local_communicator()});
  verify(result.proven);
  EXPECT_FALSE(difference(demand, result.proven.demand));
  return result;
}

CollectiveShape group(const std::vector<int>& numbers, bool relays = true) {
  CollectiveShape shape{.relays = relays};
  for (const int n : numbers) shape.group.emplace_back(n);
  return shape;
}

std::set<GpuId> gpus_used(const ProvenSchedule& proven) {
  std::set<GpuId> used;
  for (const Send& send : proven.schedule.sends) {
    for (const NodeId n : {proven.topology.link(send.link).src, proven.topology.link(send.link).dst}) {
      if (proven.topology.is_gpu(n)) used.insert(proven.topology.gpu_of(n));
    }
  }
  return used;
}

TEST(Groups, EveryCollectiveWithAndWithoutRelays) {
  const auto mesh = generated("mesh", {{"dims", "2x3"}});
  for (const CollectiveRow& row : collective_rows()) {
    if (row.source == nullptr) continue;
    SCOPED_TRACE(std::string(row.name));
    const GpuId root(row.has_root ? 1 : 0);
    for (const bool relays : {true, false}) {
      const CollectiveShape shape = group({0, 1, 3}, relays);  // a bent line
      const Demand demand = make_demand(Collective(row), 1e6, 6, 1, root, shape);
      const SynthesisResult result = solved(mesh, demand);
      EXPECT_EQ(result.proven.demand.shape(), shape);
      EXPECT_EQ(result.proven.lower_bound->us, bound({mesh, demand}, {*make_local_communicator()}).best().us);
      if (!relays) {
        for (const GpuId g : gpus_used(result.proven)) EXPECT_TRUE(std::ranges::count(shape.group, g) == 1);
      }
    }
  }
}

// Opposite corners of a mesh: others have to relay, and a ring around it is twice as fast as one way.
TEST(Groups, RelaysCarryWhatMembersCannot) {
  const auto mesh = generated("mesh", {{"dims", "2x2"}});
  const Demand demand = make_demand(Collective::alltoall, 2e8, 4, 1, GpuId{0}, group({0, 3}));
  const SynthesisResult result = solved(mesh, demand);
  EXPECT_LE(result.gap, 0.02);
  EXPECT_EQ(gpus_used(result.proven).size(), 4U);
  const Demand alone = make_demand(Collective::alltoall, 2e8, 4, 1, GpuId{0}, group({0, 3}, false));
  expect_error(ExitCode::bad_data, {"relay is none"}, [&] { solved(mesh, alone); });
}

// Without relays a group is a fabric of its own: the same schedule, in other numbers.
TEST(Groups, WithoutRelaysAreSolvedAsTheFabricThatIsLeft) {
  const auto ring = generated("ring", {{"gpus", "8"}});
  const Demand demand = make_demand(Collective::allgather, 1e6, 8, 1, GpuId{0}, group({2, 3, 4}, false));
  const Subfabric part(*ring, demand);
  const SynthesisResult whole = solved(ring, demand);
  const SynthesisResult inside =
      solved(std::make_shared<const Topology>(part.topology()), part.demand_of(demand));
  EXPECT_EQ(whole.engine, inside.engine);
  EXPECT_EQ(whole.proven.schedule.finish_us, inside.proven.schedule.finish_us);
  const ProvenSchedule back = inside_group(whole.proven);
  ASSERT_EQ(back.schedule.sends.size(), inside.proven.schedule.sends.size());
  for (std::size_t i = 0; i < back.schedule.sends.size(); ++i)
    EXPECT_EQ(back.schedule.sends[i].link, inside.proven.schedule.sends[i].link);
}

TEST(Groups, ASendThatPassesAnotherGpuIsRefusedWithoutRelays) {
  const auto mesh = generated("mesh", {{"dims", "2x2"}});
  ProvenSchedule proven =
      solved(mesh, make_demand(Collective::alltoall, 2e6, 4, 1, GpuId{0}, group({0, 1, 3}))).proven;
  ASSERT_EQ(gpus_used(proven).size(), 4U);
  CollectiveShape shape = proven.demand.shape();
  shape.relays = false;
  proven.demand = Demand(Collective::alltoall, 2e6, 4, proven.demand.with_chunks(1).contributions(),
                         proven.demand.chunks_per_contribution(), shape);
  expect_error(ExitCode::bad_data, {"rule 11", "GPU 2", "0-1,3"}, [&] { verify(proven); });
}

// No engine knows them; bounds do.
TEST(Groups, LiveStatesAndSeveralHoldersAreRefusedByName) {
  const auto ring = generated("ring", {{"gpus", "4"}});
  const std::vector<GpuId> all{GpuId{0}, GpuId{1}, GpuId{2}, GpuId{3}};
  Contribution sum{.origin = GpuId{0}, .bytes = 1e6, .destinations = all};
  sum.sources = all;
  sum.reduce = true;
  sum.held = {{.gpu = GpuId{1}, .sources = {GpuId{0}, GpuId{1}}}};
  const Demand live(Collective::custom, 1e6, 4, {sum}, 1);
  expect_error(ExitCode::unavailable, {"chunk 0", "GPU 1", "'held'", "leave it out"},
               [&] { solved(ring, live); });
  EXPECT_GT(bound({ring, live}, {*make_local_communicator()}).best().us, 0);
  Contribution datum{.origin = GpuId{0}, .bytes = 1e6, .destinations = {GpuId{3}}};
  datum.sources = {GpuId{0}, GpuId{1}};
  const Demand held_twice(Collective::custom, 1e6, 4, {datum}, 1);
  expect_error(ExitCode::unavailable, {"chunk 0", "2 GPUs hold it", "name one source"},
               [&] { solved(ring, held_twice); });
}

TEST(Counts, EveryCollectiveThatHasThem) {
  const auto ring = generated("ring", {{"gpus", "4"}});
  const std::vector<double> some{5e5, 0, 1e4, 25e5};
  const std::vector<double> pairs{7, 1e6, 0, 2e5, 1e4, 0, 3e6, 0, 0, 4e5, 0, 1e3, 9e5, 1e5, 2e6, 0};
  for (const CollectiveRow& row : collective_rows()) {
    if (row.num_counts(4) == 0) continue;
    SCOPED_TRACE(std::string(row.name));
    const CollectiveShape shape{.counts = row.num_counts(4) == 4 ? some : pairs};
    const double bytes = size_of_counts(Collective(row), shape, 4);
    const SynthesisResult result = solved(ring, make_demand(Collective(row), bytes, 4, 1, GpuId{0}, shape));
    EXPECT_EQ(result.proven.demand.shape(), shape);
    EXPECT_LE(result.gap, 0.05);
  }
}

// GPU 0 has much for GPU 2 and little for the others. In one piece that takes 4000 us over two hops; of three
// pieces two follow each other one way and the third goes the other.
TEST(Counts, ALargePartIsCutIntoMoreChunks) {
  const auto ring = generated("ring", {{"gpus", "4"}});
  CollectiveShape shape{.counts = std::vector<double>(16, 0)};
  for (int to = 1; to < 4; ++to) shape.counts[static_cast<std::size_t>(to)] = to == 2 ? 1e8 : 1e3;
  SolveOptions options = quick();
  options.chunks = 1;
  const Demand demand = make_demand(Collective::alltoall, size_of_counts(Collective::alltoall, shape, 4), 4,
                                    1, GpuId{0}, shape);
  const SynthesisResult result = solved(ring, demand, options);
  EXPECT_EQ(result.proven.demand.contributions().size(), 5U);  // 3, 1 and 1
  EXPECT_NEAR(result.proven.schedule.finish_us, 2000, 10);
}

}  // namespace
}  // namespace rondo::test_shapes
