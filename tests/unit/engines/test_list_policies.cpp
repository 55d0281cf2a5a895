// What tells the policies of list and queue apart, on four GPUs.

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "fabrics.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/engines/engines.hpp"

namespace rondo::test_list_policies {
namespace {

struct EngineUnderTest {
  Engine prepare;
  std::vector<std::string> policies;
};
std::vector<EngineUnderTest> engines() {
  return {{prepare_list, list_policies()}, {prepare_queue, queue_policies()}};
}

Schedule schedule(const EngineUnderTest& engine, const std::shared_ptr<const Topology>& topology,
                  const std::string& policy, std::uint64_t seed = 0) {
  const std::size_t gpus = topology->num_gpus();
  const Demand demand = make_demand(Collective::allgather, static_cast<double>(gpus) * kMB, gpus, 1);
  EngineOptions options;
  options.policy = policy;
  options.seed = seed;
  EngineResult result = engine.prepare({topology, demand}, options, {})(demand, options);
  const ReplayResult replayed = replay(*topology, demand, result.schedule->sends);
  EXPECT_TRUE(replayed.valid()) << policy << ": " << *replayed.violation;
  EXPECT_DOUBLE_EQ(replayed.finish_us, result.schedule->finish_us);
  return std::move(*result.schedule);
}

TEST(Policies, MeetTheBoundOfARingAndAStar) {
  for (const EngineUnderTest& engine : engines()) {
    for (const std::string& policy : engine.policies) {
      EXPECT_DOUBLE_EQ(schedule(engine, one_way_ring(4), policy).finish_us, 3003) << policy;
      EXPECT_DOUBLE_EQ(schedule(engine, star(3), policy).finish_us, 2002) << policy;
    }
  }
}

constexpr LinkId kFrom2To3{0};

/// GPUs 0 and 1 feed GPU 2, and that feeds GPU 3 over a slow link. Data of GPU 0 reaches GPU 2 before that of
/// GPU 1 does.
std::shared_ptr<const Topology> funnel(std::vector<Link> more) {
  more.insert(more.begin(), {link(2, 3, 0.25), link(0, 2), link(1, 2, 1, 100)});
  return fabric({gpu(), gpu(), gpu(), gpu()}, more);
}

/// Whose chunk GPU 2 sends to GPU 3 after its own: both others' have come by then.
int second_over_the_funnel(const Schedule& schedule) {
  std::vector<int> chunks;
  for (const Send& send : schedule.sends) {
    if (send.link == kFrom2To3) chunks.push_back(send.chunk.value);
  }
  EXPECT_EQ(chunks.size(), 3U);
  EXPECT_EQ(chunks.front(), 2);
  return chunks[1];
}

TEST(Policies, RarestAndFurthestAgainstNearestAndOldest) {
  // GPU 0 feeds GPU 1 as well. So three GPUs hold chunk 0 when two hold chunk 1, for which GPU 0 still waits.
  const auto topology = funnel({link(0, 1), link(3, 0)});
  const std::map<std::string, int> expected{
      {"rarest", 1},         {"rarest-full", 1},     {"rarest-scarce", 1},   {"rarest-far-full", 1},
      {"furthest", 1},       {"furthest-scarce", 1}, {"furthest-full", 1},   {"furthest-fit", 1},
      {"soonest", 1},        {"rarest-fitting", 1},  {"soonest-fitting", 1}, {"nearest", 0},
      {"oldest-full", 0},    {"oldest-scarce", 0},   {"rarest-joined", 1},   {"furthest-joined", 1},
      {"soonest-joined", 1}, {"pairwise-joined", 1}};
  for (const EngineUnderTest& engine : engines()) {
    for (const std::string& policy : engine.policies) {
      for (const std::uint64_t seed : {0, 1, 2, 3}) {
        EXPECT_EQ(second_over_the_funnel(schedule(engine, topology, policy, seed)), expected.at(policy))
            << policy;
      }
    }
  }
}

TEST(Policies, DistanceOrChanceBetweenEquallyRareChunks) {
  // GPU 3 feeds both; GPU 0, which waits for chunk 1, is farther from it.
  const auto topology = funnel({link(3, 0, 1, 100), link(3, 1)});
  std::map<std::string, std::set<int>> found;
  for (const std::string& policy : list_policies()) {
    for (std::uint64_t seed = 0; seed < 10; ++seed)
      found[policy].insert(second_over_the_funnel(schedule(engines().front(), topology, policy, seed)));
  }
  for (const char* policy : {"rarest", "rarest-full"}) EXPECT_EQ(found[policy], (std::set{0, 1})) << policy;
  for (const char* policy : {"rarest-far-full", "furthest", "furthest-full", "soonest"})
    EXPECT_EQ(found[policy], std::set{1}) << policy;
}

}  // namespace
}  // namespace rondo::test_list_policies
