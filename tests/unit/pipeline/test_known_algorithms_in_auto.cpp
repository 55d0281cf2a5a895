#include <fmt/format.h>
#include <gtest/gtest.h>

#include "rondo/core/error.hpp"
#include "rondo/core/verify.hpp"
#include "rondo/pipeline/registry.hpp"
#include "rondo/pipeline/synthesize.hpp"
#include "topologies.hpp"

namespace rondo::test_known_algorithms_in_auto {
namespace {

using Fabric = std::shared_ptr<const Topology>;

/// Nothing where the engine does not do the collective there.
std::optional<double> finish_us(const Fabric& topology, const Demand& demand, const std::string& engine) {
  SolveOptions options;
  options.engine = engine;
  options.improve_work = 1e4;  // the less, the more it matters what else is there
  try {
    const SynthesisResult result = synthesize({topology, demand, options}, {*make_local_communicator()});
    verify(result.proven);
    return result.proven.schedule.finish_us;
  } catch (const Error& error) {
    if (error.code() != ExitCode::unavailable || engine == "auto") throw;
    return std::nullopt;
  }
}

/// Of small sizes latencies and messages make most of the time, of large ones bandwidth does.
void expect_no_later_than_known(const Fabric& topology,
                                const std::vector<std::string>& collectives = {"allgather", "reduce_scatter",
                                                                               "allreduce", "alltoall"},
                                const std::vector<double>& sizes = {1e3, 1e5}) {
  std::size_t compared = 0;
  for (const std::string& collective : collectives) {
    for (const double bytes : sizes) {
      const Demand demand = make_demand(parse_collective(collective), bytes, topology->num_gpus(), 1);
      const double auto_us = *finish_us(topology, demand, "auto");
      for (const EngineInfo& engine : engine_registry()) {
        if (!engine.is_known_algorithm) continue;
        const std::optional<double> known_us = finish_us(topology, demand, engine.name);
        if (!known_us) continue;
        ++compared;
        EXPECT_LE(auto_us, *known_us * (1 + 1e-9))
            << fmt::format("{} of {} bytes on {} by {}", collective, bytes, topology->name(), engine.name);
      }
    }
  }
  EXPECT_GE(compared, 2 * collectives.size() * sizes.size());
}

TEST(Auto, IsNoLaterThanKnownAlgorithmsOnATorus) {
  expect_no_later_than_known(generated("torus", {{"dims", "2x3"}}));
}

TEST(Auto, IsNoLaterThanKnownAlgorithmsWhereMessagesCost) {
  expect_no_later_than_known(generated("full", {{"gpus", "6"}, {"message_us", "0.5"}}));
}

// In 3 steps, and 9 rounds for 2 chunks a pair: 3 x 0.7 us and 4.5 times 50 KB over 50 GB/s.
TEST(Auto, IsNoLaterThanSynchronousAlgorithmsWhereMessagesCost) {
  const Fabric ring = generated("ring", {{"gpus", "6"}, {"message_us", "0.7"}, {"latency_us", "0"}});
  EXPECT_LE(*finish_us(ring, make_demand(Collective::alltoall, 3e5, 6, 1), "auto"), 6.6 + 1e-9);
}

TEST(Auto, IsNoLaterThanKnownAlgorithmsOverSwitches) {
  expect_no_later_than_known(star(5));
}

TEST(Auto, IsNoLaterThanKnownAlgorithmsWhereMessagesOverRailsCost) {
  const Fabric rails =
      generated("rails", {{"boxes", "2"}, {"rails", "2"}, {"gpus", "2"}, {"inter_message_us", "0.7"}});
  expect_no_later_than_known(rails, {"allgather"}, {1e5});
}

}  // namespace
}  // namespace rondo::test_known_algorithms_in_auto
