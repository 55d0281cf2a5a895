// The schedule does not depend on the number of ranks: together the ranks find what each finds alone.

#include "rondo/pipeline/synthesize.hpp"

#include <gtest/gtest.h>

#include <string>

#include "rondo/core/generators.hpp"

namespace rondo {
namespace {

Topology torus() {
  return generate_topology("torus", {{"dims", "3x3"}});
}

void expect_same_on_any_ranks(Collective collective, const std::string& engine, Topology fabric = torus()) {
  const auto topology = std::make_shared<const Topology>(std::move(fabric));
  const Demand demand = make_demand(collective, 90'000, topology->num_gpus(), 1);
  SolveOptions options;
  options.engine = engine;
  options.chunks = 2;
  const Problem problem{topology, demand, options};
  const SynthesisResult together = synthesize(problem, {*make_world_communicator()});
  const SynthesisResult alone = synthesize(problem, {*make_local_communicator()});
  EXPECT_EQ(together.engine, alone.engine);
  const auto& a = together.proven.schedule.sends;
  const auto& b = alone.proven.schedule.sends;
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t s = 0; s < a.size(); ++s) {
    EXPECT_EQ(a[s].chunk, b[s].chunk);
    EXPECT_EQ(a[s].link, b[s].link);
    EXPECT_EQ(a[s].start_us, b[s].start_us);  // to the bit
    EXPECT_EQ(a[s].arrival_us, b[s].arrival_us);
  }
}

TEST(Synthesize, ListAllGather) {
  expect_same_on_any_ranks(Collective::allgather, "list");
}
TEST(Synthesize, AutoAllGather) {
  expect_same_on_any_ranks(Collective::allgather, "auto");
}
TEST(Synthesize, AutoAllGatherOnADamagedFabric) {
  expect_same_on_any_ranks(Collective::allgather, "auto", degrade(torus(), 0.1, 0.5, 1));
}
TEST(Synthesize, AllGatherOfEachEngine) {
  for (const std::string engine : {"queue", "lift", "trees"}) {
    SCOPED_TRACE(engine);
    expect_same_on_any_ranks(Collective::allgather, engine);
    expect_same_on_any_ranks(Collective::allgather, engine,
                             generate_topology("star", {{"chassis", "2"}, {"gpus", "3"}}));
  }
}
TEST(Synthesize, FlowAllToAll) {
  expect_same_on_any_ranks(Collective::alltoall, "flow");
}
TEST(Synthesize, AutoAllToAll) {
  expect_same_on_any_ranks(Collective::alltoall, "auto");
}

}  // namespace
}  // namespace rondo
