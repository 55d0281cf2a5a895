// Engine rounds: the schedule depends neither on the number of ranks, fewer or more than there are parts, nor
// on where a run was stopped.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "rondo/core/generators.hpp"
#include "rondo/io/schedule_hdf5.hpp"
#include "rondo/io/topology_files.hpp"
#include "rondo/pipeline/synthesize.hpp"

namespace rondo::rounds_test {
namespace {

using Fabric = std::shared_ptr<const Topology>;

Fabric dgx1() {
  return std::make_shared<const Topology>(load_topology("dgx1"));
}

Fabric star(const std::string& chassis, const std::string& gpus) {
  return std::make_shared<const Topology>(generate_topology("star", {{"chassis", chassis}, {"gpus", gpus}}));
}

/// A fifth of the links at half bandwidth: no two parts are alike.
Fabric damaged_mesh(std::uint64_t seed) {
  return std::make_shared<const Topology>(
      degrade(generate_topology("mesh", {{"dims", "2x4"}}), 0.2, 0.5, seed));
}

Fabric torus() {
  return std::make_shared<const Topology>(generate_topology("torus", {{"dims", "3x3"}}));
}

SolveOptions in_rounds(const std::string& decompose, int parts, int chunks) {
  SolveOptions options;
  options.engine = "rounds";
  options.rounds.start = RoundsStart::list;
  options.decompose = decompose;
  options.parts = parts;
  options.chunks = chunks;
  return options;
}

struct Solved {
  std::string digest;
  bool by_models = false;  ///< a round ended earlier than the plan it began with, or there was none
  std::vector<std::string> limits_hit = {};
  std::vector<RoundRecord> records = {};  ///< whole, of the rounds that were not finished before
};

Solved solve(const Fabric& fabric, Collective collective, double bytes, const SolveOptions& options,
             const Communicator& communicator, std::vector<RoundRecord> finished = {}) {
  const Demand demand = make_demand(collective, bytes, fabric->num_gpus(), 1);
  Solved solved;
  const RunStore store{std::move(finished),
                       [&](const RoundRecord& record) { solved.records.push_back(record); }};
  const SynthesisResult result =
      synthesize({fabric, demand, options}, {.communicator = communicator, .store = store});
  solved.digest = schedule_digest(result.proven.demand, result.proven.schedule);
  solved.limits_hit = result.limits_hit;
  for (const RoundRecord& record : result.rounds) {
    const bool planned = !std::isnan(record.finish_before_us);
    solved.by_models = solved.by_models || !planned || record.finish_after_us < record.finish_before_us;
  }
  return solved;
}

/// What the root finds without the others.
std::string digest_alone(const Fabric& fabric, Collective collective, double bytes,
                         const SolveOptions& options, const Communicator& world) {
  return to_text(on_root(world, [&] {
    return to_bytes(solve(fabric, collective, bytes, options, *make_local_communicator()).digest);
  }));
}

void expect_same_on_any_ranks(const Fabric& fabric, Collective collective, double bytes,
                              const SolveOptions& options) {
  const auto world = make_world_communicator();
  const Solved together = solve(fabric, collective, bytes, options, *world);
  EXPECT_EQ(together.digest, digest_alone(fabric, collective, bytes, options, *world));
  EXPECT_TRUE(together.by_models);  // otherwise the list scheduler's plan is all there is
}

/// Stops after every number of rounds, of which there have to be several, and goes on from there.
void expect_same_when_resumed(const Fabric& fabric, Collective collective, double bytes,
                              const SolveOptions& options) {
  const auto world = make_world_communicator();
  const Solved undisturbed = solve(fabric, collective, bytes, options, *world);
  const std::vector<RoundRecord>& records = undisturbed.records;
  ASSERT_GT(records.size(), 1U);
  EXPECT_TRUE(undisturbed.by_models);  // otherwise the list scheduler's plan is all there is
  for (std::size_t k = 1; k <= records.size(); ++k) {
    const auto end = records.begin() + static_cast<std::ptrdiff_t>(k);
    const Solved resumed = solve(fabric, collective, bytes, options, *world, {records.begin(), end});
    EXPECT_EQ(resumed.digest, undisturbed.digest) << "after " << k << " of " << records.size() << " rounds";
    EXPECT_EQ(resumed.limits_hit, undisturbed.limits_hit);
    ASSERT_EQ(resumed.records.size(), records.size() - k);
    for (std::size_t i = 0; i < resumed.records.size(); ++i)
      EXPECT_EQ(resumed.records[i].round, static_cast<std::int64_t>(k + i));
  }
}

SolveOptions of_epochs(int epochs, SolveOptions options) {
  options.rounds.epochs = epochs;
  return options;
}

SolveOptions without_start(SolveOptions options) {
  options.rounds.start = RoundsStart::none;
  return options;
}

TEST(Rounds, WholeAllGather) {
  expect_same_on_any_ranks(torus(), Collective::allgather, 1e9, in_rounds("none", 0, 1));
}
TEST(Rounds, WholeAllToAll) {
  expect_same_on_any_ranks(star("2", "2"), Collective::alltoall, 4e6, without_start(in_rounds("none", 0, 1)));
}
TEST(Rounds, PopOfTwo) {
  expect_same_on_any_ranks(dgx1(), Collective::allgather, 200e3, in_rounds("pop", 2, 3));
}
TEST(Rounds, PopOfFive) {
  expect_same_on_any_ranks(torus(), Collective::allgather, 9e6, without_start(in_rounds("pop", 5, 2)));
}
TEST(Rounds, PopWithoutAStart) {
  expect_same_on_any_ranks(dgx1(), Collective::allgather, 8e6, without_start(in_rounds("pop", 3, 3)));
}
TEST(Rounds, NcFlow) {
  expect_same_on_any_ranks(damaged_mesh(2), Collective::allgather, 90e3,
                           of_epochs(4, in_rounds("ncflow", 2, 2)));
}
TEST(Rounds, NcFlowWithoutAStart) {
  expect_same_on_any_ranks(star("3", "4"), Collective::allgather, 12e6,
                           without_start(in_rounds("ncflow", 0, 2)));
}

TEST(Rounds, ResumedWhole) {
  expect_same_when_resumed(torus(), Collective::allgather, 1e9, of_epochs(1, in_rounds("none", 0, 1)));
  expect_same_when_resumed(dgx1(), Collective::allgather, 200e3, of_epochs(5, in_rounds("none", 0, 3)));
}
TEST(Rounds, ResumedPop) {
  SolveOptions options = of_epochs(4, in_rounds("pop", 3, 2));
  options.seed = 3;
  expect_same_when_resumed(damaged_mesh(3), Collective::allgather, 90e3, options);
}
TEST(Rounds, ResumedNcFlow) {
  expect_same_when_resumed(damaged_mesh(2), Collective::allgather, 90e3,
                           of_epochs(4, in_rounds("ncflow", 2, 2)));
}
TEST(Rounds, ResumedWhereTheWorkIsSpent) {
  SolveOptions options = of_epochs(4, in_rounds("ncflow", 2, 2));
  options.rounds.model_work = 3e4;  // less than all its rounds take
  expect_same_when_resumed(damaged_mesh(2), Collective::allgather, 90e3, options);
  const auto world = make_world_communicator();
  EXPECT_EQ(solve(damaged_mesh(2), Collective::allgather, 90e3, options, *world).limits_hit,
            std::vector<std::string>{"work"});
}
TEST(Rounds, ResumedWithoutAStart) {
  expect_same_when_resumed(dgx1(), Collective::allgather, 8e6,
                           of_epochs(2, without_start(in_rounds("none", 0, 1))));
}

}  // namespace
}  // namespace rondo::rounds_test
