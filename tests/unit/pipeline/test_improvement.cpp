#include <gtest/gtest.h>

#include <algorithm>

#include "improvement.hpp"
#include "rondo/core/generators.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/engines/engines.hpp"

namespace rondo {
namespace {

using Parameters = std::map<std::string, std::string>;

std::shared_ptr<const Topology> ring_one_way(int gpus) {
  std::vector<Link> links;
  for (int g = 0; g < gpus; ++g) links.push_back({NodeId{g}, NodeId{(g + 1) % gpus}, 1, 1});
  return std::make_shared<const Topology>(
      TopologyData{"ring", "", std::vector<Node>(static_cast<std::size_t>(gpus)), links, {}});
}

Demand allgather(const Topology& topology, int chunks = 1) {
  const auto gpus = static_cast<double>(topology.num_gpus());
  return make_demand(Collective::allgather, gpus * chunks * 1e6, topology.num_gpus(), chunks);
}

TEST(KeptMoves, TheRestStartsLater) {
  // One chunk of 1000 us has left GPU 0; all else starts at 1001: three steps of 1001 us are missing still.
  const auto ring = ring_one_way(4);
  const Demand demand = allgather(*ring);
  for (const Engine& prepare : {Engine(prepare_list), Engine(prepare_queue)}) {
    const PreparedEngine engine = prepare({ring, demand}, {}, {});
    const EngineResult whole = engine(demand, {});
    const auto first = std::ranges::find(whole.moves, ChunkId{0}, &Move::chunk);
    ASSERT_NE(first, whole.moves.end());
    EXPECT_DOUBLE_EQ(first->start_us, 0);
    const std::vector<Move> kept{*first};
    EngineOptions options;
    options.kept = {kept, 1001};
    const EngineResult result = engine(demand, options);
    EXPECT_DOUBLE_EQ(result.schedule->finish_us, 4004);
    EXPECT_EQ(result.moves.size(), 12U);
    const ReplayResult replayed = replay(*ring, demand, result.schedule->sends);
    EXPECT_TRUE(replayed.valid()) << *replayed.violation;
  }
}

TEST(KeptMoves, AllOfThemGiveTheScheduleAgain) {
  const auto torus = std::make_shared<const Topology>(generate_topology("torus", {{"dims", "3x3"}}));
  const Demand demand = allgather(*torus, 2);
  for (const Engine& prepare : {Engine(prepare_list), Engine(prepare_queue), Engine(prepare_lift)}) {
    const PreparedEngine engine = prepare({torus, demand}, {}, {});
    const EngineResult whole = engine(demand, {});
    EngineOptions options;
    options.kept = {whole.moves, whole.schedule->finish_us};
    const Schedule again = *engine(demand, options).schedule;
    EXPECT_DOUBLE_EQ(again.finish_us, whole.schedule->finish_us);
    EXPECT_TRUE(std::ranges::equal(again.sends, whole.schedule->sends, [](const Send& a, const Send& b) {
      return a.chunk == b.chunk && a.link == b.link && a.start_us == b.start_us && a.end_us == b.end_us;
    }));
  }
}

TEST(Improvement, MendsAScheduleThatSendsOneAfterAnother) {
  const auto ring = ring_one_way(4);
  const Demand demand = allgather(*ring);
  const PreparedEngine engine = prepare_list({ring, demand}, {}, {});
  std::vector<Move> serial = engine(demand, {}).moves;
  for (std::size_t i = 0; i < serial.size(); ++i) serial[i].start_us = 1001 * static_cast<double>(i);
  ImprovementTask task{*ring, demand, engine, {}, list_policies()};
  task.work_limit = 1e5;
  task.stop = [](double) { return false; };
  const Improvement result = improve(task, serial, 12012, *make_local_communicator());
  // At most nine tenths of the schedule are freed, of which the best takes 3003.
  EXPECT_LE(result.finish_us, 3003 + 0.1 * 12012 + 1001);
  EXPECT_GE(result.finish_us, 3003);
  EngineOptions options;
  options.kept = {result.moves, result.finish_us};
  const Schedule schedule = *engine(demand, options).schedule;
  const ReplayResult replayed = replay(*ring, demand, schedule.sends);
  EXPECT_TRUE(replayed.valid()) << *replayed.violation;
  EXPECT_DOUBLE_EQ(replayed.finish_us, result.finish_us);
}

TEST(Improvement, StopsWhenToldTo) {
  const auto ring = ring_one_way(3);
  const Demand demand = allgather(*ring);
  const PreparedEngine engine = prepare_list({ring, demand}, {}, {});
  ImprovementTask task{*ring, demand, engine, {}, list_policies()};
  task.work_limit = 1e5;
  task.stop = [](double) { return true; };
  EXPECT_EQ(improve(task, engine(demand, {}).moves, 2002, *make_local_communicator()).tries, 0U);
}

}  // namespace
}  // namespace rondo
