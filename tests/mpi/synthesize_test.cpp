// The schedule does not depend on the number of ranks: together the ranks find what each finds alone.

#include "rondo/pipeline/synthesize.hpp"

#include <gtest/gtest.h>

#include <string>

#include "rondo/core/generators.hpp"

namespace rondo {
namespace {

void expect_same_on_any_ranks(Collective collective, const std::string& engine) {
  const auto torus = std::make_shared<const Topology>(generate_topology("torus", {{"dims", "3x3"}}));
  const Demand demand = make_demand(collective, 90'000, torus->num_gpus(), 1);
  SolveOptions options;
  options.engine = engine;
  options.chunks = 2;
  const Progress silent = [](const std::string&) {};
  const SynthesisResult together = synthesize(torus, demand, options, *make_world_communicator(), silent);
  const SynthesisResult alone = synthesize(torus, demand, options, *make_local_communicator(), silent);
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
TEST(Synthesize, FlowAllToAll) {
  expect_same_on_any_ranks(Collective::alltoall, "flow");
}
TEST(Synthesize, AutoAllToAll) {
  expect_same_on_any_ranks(Collective::alltoall, "auto");
}

}  // namespace
}  // namespace rondo
