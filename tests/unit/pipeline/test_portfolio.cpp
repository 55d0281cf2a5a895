#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <string>

#include "chunk_counts.hpp"
#include "more_chunks.hpp"
#include "portfolio.hpp"

namespace rondo::test_portfolio {
namespace {

/// `most`: chunks that each policy of an engine came to.
void try_first_batches(const std::vector<EngineInfo>& engines, const Demand& demand,
                       const std::function<double(const Candidate&)>& ends_us,
                       std::map<std::string, int>& most) {
  std::vector<Trial> trials;
  for (std::size_t i = 0; i < first_batches(engines, demand, {}, trials).size(); ++i) {
    const auto batch = first_batches(engines, demand, {}, trials)[i];
    ASSERT_FALSE(batch.empty());
    for (const Candidate& c : batch) {
      trials.push_back({c, ends_us(c)});
      most[c.policy] = std::max(most[c.policy], c.chunks);
    }
  }
}

TEST(ChunkCounts, PowersOfTwoAndTheLargest) {
  const Demand demand = make_demand(Collective::allgather, 4 * 11'000, 4, 1);
  SolveOptions least;
  least.min_chunk_bytes = 1024;
  EXPECT_EQ(chunk_counts(demand, least), (std::vector<int>{1, 2, 4, 8, 10}));
  SolveOptions fixed;
  fixed.chunks = 3;
  EXPECT_EQ(chunk_counts(demand, fixed), std::vector<int>{3});
}

TEST(ChunkCounts, LeastChunksFollowTheSize) {
  const auto most = [](double bytes) {
    return chunk_counts(make_demand(Collective::allgather, 4 * bytes, 4, 1), {}).back();
  };
  EXPECT_EQ(most(499), 1);
  EXPECT_EQ(most(8'000), 32);          // of 250 bytes
  EXPECT_EQ(most(32'000), 64);         // of 500
  EXPECT_EQ(most(100 * 1024.0), 100);  // of 1024
}

TEST(ChunkCounts, NeverBelowTheSmallestChunkUnlessTheDataIsSmaller) {
  const Demand demand = make_demand(Collective::allgather, 4 * 100, 4, 1);
  EXPECT_EQ(chunk_counts(demand, {}), std::vector<int>{1});
}

TEST(Portfolio, PoliciesThatPipelineAreLeftOutOnceMoreChunksCannotHelpThem) {
  const Demand demand = make_demand(Collective::broadcast, 1e9, 4, 1);
  const std::vector<EngineInfo> engines{find_engine("rooted")};
  const auto ends_us = [](const Candidate& c) {
    if (c.policy == "whole") return 100.0 + 4000.0 / c.chunks;
    if (c.policy == "deep") return 99.0 + 9000.0 / c.chunks;  // behind until there are many chunks
    return c.policy == "even" ? 110.0 + 2000.0 / c.chunks : 200.0 + 4000.0 / c.chunks;
  };
  std::map<std::string, int> most;
  ASSERT_NO_FATAL_FAILURE(try_first_batches(engines, demand, ends_us, most));
  EXPECT_GT(most["whole"], 4096);
  EXPECT_EQ(most["deep"], most["whole"]);
  // 1024 and 2048 chunks tell.
  EXPECT_EQ(most["shallow"], 2048);
  EXPECT_EQ(most["even"], 2048);
}

// 512 and 1024 chunks tell that neither policy ends before 110 us, and another one might end at 90.
TEST(Portfolio, EnginesStayBehindOnceMoreChunksCannotHelpAnyPolicy) {
  std::vector<Trial> trials;
  EXPECT_FALSE(all_stay_behind(trials, 100));
  const auto try_in = [&](int chunks, double least_us, const char* policy) {
    trials.push_back({{0, chunks, policy}, least_us + 9000.0 / chunks});
  };
  try_in(512, 110, "in-order");
  try_in(512, 110, "even-rates");
  try_in(1024, 110, "in-order");
  EXPECT_FALSE(all_stay_behind(trials, 100));
  try_in(1024, 110, "even-rates");
  EXPECT_TRUE(all_stay_behind(trials, 100));
  EXPECT_FALSE(all_stay_behind(trials, 109));
  try_in(256, 90, "rarest");
  try_in(512, 90, "rarest");
  EXPECT_FALSE(all_stay_behind(trials, 100));
  try_in(1024, 90, "rarest");
  EXPECT_FALSE(all_stay_behind(trials, 100));
}

TEST(Portfolio, WhatEndsLaterInMoreChunksTwiceEndsLaterInAllMore) {
  std::vector<Trial> trials;
  EXPECT_FALSE(all_end_later_in_more(trials));
  const auto try_in = [&](int chunks, double us, const char* policy = "doubling") {
    trials.push_back({{0, chunks, policy}, us});
  };
  try_in(4, 66);
  try_in(8, 62);
  try_in(16, 64);
  EXPECT_FALSE(all_end_later_in_more(trials));
  try_in(32, 65);
  EXPECT_TRUE(all_end_later_in_more(trials));
  try_in(64, kInfinity);
  EXPECT_TRUE(all_end_later_in_more(trials));
  try_in(8, 70, "multiplying");
  try_in(16, 69, "multiplying");
  try_in(32, 68, "multiplying");
  EXPECT_FALSE(all_end_later_in_more(trials));
}

TEST(Portfolio, OfManyPairsPoliciesThatWereBehindAreNotTriedInMoreChunks) {
  const Demand demand = make_demand(Collective::alltoall, 1e9, 256, 1);
  const std::vector<EngineInfo> engines{find_engine("flow")};
  const auto ends_us = [](const Candidate& c) {
    const double us = 1000 + 40.0 / c.chunks;
    return c.policy == "alone" ? us : c.policy == "load" ? us + 5 : us + 20;
  };
  std::map<std::string, int> most;
  ASSERT_NO_FATAL_FAILURE(try_first_batches(engines, demand, ends_us, most));
  EXPECT_GE(most["alone"], 4);
  EXPECT_GE(most["load"], 4);
  EXPECT_EQ(most["bottleneck"], 1);
  EXPECT_EQ(most["shortest"], 1);
}

TEST(Portfolio, QuickEnginesGoFirstInAllPowersOfTwo) {
  const Demand demand = make_demand(Collective::allgather, 4 * 11'000, 4, 1);
  const std::vector<EngineInfo> engines{find_engine("list"), find_engine("leaves")};
  const auto counts_of_leaves = [&](const std::vector<Candidate>& batch) {
    std::vector<int> counts;
    for (const Candidate& c : batch) {
      if (c.engine == 1) counts.push_back(c.chunks);
    }
    return counts;
  };
  const auto whole = first_batches(engines, demand, {}, {});
  EXPECT_EQ(counts_of_leaves(whole.front()), (std::vector<int>{1, 2, 4, 8, 16, 32}));
  EXPECT_EQ(whole.front().size(), 6U);
  for (std::size_t i = 1; i < whole.size(); ++i) EXPECT_TRUE(counts_of_leaves(whole[i]).empty());
  // Of a part in the most chunks first, and no others if that is near enough.
  const auto part = first_batches(engines, demand, {}, {}, kWorkBudget, true);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(counts_of_leaves(part[i]), std::vector<int>{32 >> i});
  // Asked for by name it goes as others do.
  EXPECT_GT(first_batches({engines[1]}, demand, {}, {}).size(), 1U);
}

TEST(Portfolio, NumbersOfChunksThatAnEngineFoundAreTriedBesidePowersOfTwo) {
  const Demand demand = make_demand(Collective::allgather, 4 * 11'000, 4, 1);
  EngineInfo leaves = find_engine("leaves");
  leaves.found_counts = {5, 16, 100};
  EXPECT_EQ(chunk_counts_of(leaves, demand, {}), (std::vector<int>{1, 2, 4, 5, 8, 16, 32, 44}));
  const auto batches = first_batches({find_engine("list"), leaves}, demand, {}, {});
  std::vector<int> counts;
  for (const Candidate& c : batches.front()) counts.push_back(c.chunks);
  EXPECT_EQ(counts, (std::vector<int>{1, 2, 4, 5, 8, 16, 32}));
  SolveOptions fixed;
  fixed.chunks = 3;
  EXPECT_EQ(chunk_counts_of(leaves, demand, fixed), std::vector<int>{3});
  SolveOptions meeting;
  meeting.only_powers_of_two = true;
  EXPECT_EQ(chunk_counts_of(leaves, demand, meeting), chunk_counts(demand, {}));
}

// Finish times of 100 + 800 / chunks.
TEST(Portfolio, WhatMoreChunksGainIsToldByThoseTried) {
  const auto trial = [](const std::string& policy, int chunks, std::uint64_t seed, double late_us) {
    return Trial{{0, chunks, policy, seed, 1}, 100 + 800.0 / chunks + late_us};
  };
  std::vector<Trial> trials{trial("a", 4, 0, 0), trial("b", 4, 0, 50), trial("b", 8, 0, 50)};
  EXPECT_EQ(expected_us("a", 0, 8, trials), 0);
  EXPECT_EQ(first_in_more(0, 8, trials).policy, "a");
  EXPECT_EQ(first_in_more(1, 8, trials).finish_us, kInfinity);
  trials.push_back(trial("a", 8, 0, 5));
  trials.push_back(trial("a", 8, 1, 0));
  EXPECT_NEAR(expected_us("a", 0, 16, trials), 150, 1e-9);
  EXPECT_NEAR(expected_us("b", 0, 32, trials), 175, 1e-9);
  EXPECT_EQ(first_in_more(0, 16, trials).policy, "a");
  // Only what was not tried in as many.
  trials.push_back(trial("a", 16, 0, 0));
  EXPECT_EQ(first_in_more(0, 16, trials).policy, "b");
  EXPECT_EQ(first_in_more(0, 32, trials).policy, "a");
  EXPECT_NEAR(first_in_more(0, 32, trials).finish_us, 125, 1e-9);
}

// By 1000 us + so much / chunks: one policy may still catch up with another one, or not.
TEST(Portfolio, PoliciesThatPipelineAreTriedInMoreChunksUntilTheyStayBehind) {
  const std::vector<EngineInfo> engines{find_engine("spanning")};
  const Demand demand = make_demand(Collective::allreduce, 1e9, 16, 1);
  const auto in_4096 = [&](double in_order_us, double even_rates_us) {
    std::vector<Trial> trials;
    for (const int chunks : {1024, 2048}) {
      trials.push_back({{0, chunks, "in-order", 0, 1}, in_order_us + 1e5 / chunks});
      trials.push_back({{0, chunks, "even-rates", 0, 1}, even_rates_us + 3e5 / chunks});
    }
    std::vector<std::string> policies;
    for (const auto& batch : first_batches(engines, demand, {}, trials, kWorkBudget, false))
      for (const Candidate& candidate : batch)
        if (candidate.chunks == 4096) policies.push_back(candidate.policy);
    return policies;
  };
  EXPECT_EQ(in_4096(1000, 1000), (std::vector<std::string>{"in-order", "even-rates"}));
  EXPECT_EQ(in_4096(1000, 1100), (std::vector<std::string>{"in-order"}));
}

// Up to 1024 chunks; the other policy behind in 512 of them.
TEST(Portfolio, OfPoliciesThatPipelineThoseAreLeftThatMayYetBeBest) {
  const EngineInfo engine = find_engine("spanning");
  const Candidate best{0, 2048, "in-order", 0, 1};
  std::vector<Trial> trials{{{0, 1024, "in-order", 0, 1}, 1010},
                            {best, 1000},
                            {{0, 256, "even-rates", 0, 1}, 1300},
                            {{0, 512, "even-rates", 0, 1}, 1200}};
  EXPECT_EQ(untold_policies(engine, best, trials), (std::vector<std::string>{"even-rates"}));
  trials.push_back({{0, 1024, "even-rates", 0, 1}, 1150});
  EXPECT_EQ(untold_policies(engine, {0, 4096, "in-order", 0, 1}, trials),
            (std::vector<std::string>{"in-order", "even-rates"}));
  trials.push_back({{0, 2048, "even-rates", 0, 1}, 1140});
  EXPECT_TRUE(untold_policies(engine, best, trials).empty());
  EXPECT_EQ(untold_policies(engine, {0, 4096, "in-order", 0, 1}, trials),
            (std::vector<std::string>{"in-order"}));
}

TEST(Portfolio, WhatPipelinesIsSplitFartherThanOthers) {
  const EngineInfo spanning = find_engine("spanning");
  const Demand demand = make_demand(Collective::allreduce, 1e9, 16, 1);
  EXPECT_EQ(most_pipelined_chunks(spanning, demand, {}), 512 * 16);
  EXPECT_EQ(most_pipelined_chunks(spanning, make_demand(Collective::allreduce, 1e9, 256, 1), {}), 4296);
  // By bytes.
  EXPECT_EQ(most_pipelined_chunks(spanning, make_demand(Collective::allreduce, 1024e3, 16, 1), {}), 1000);
  EXPECT_EQ(most_pipelined_chunks(find_engine("list"), demand, {}), 0);
  SolveOptions fixed;
  fixed.chunks = 16;
  EXPECT_EQ(most_pipelined_chunks(spanning, demand, fixed), 0);
}

TEST(Portfolio, LaterRoundsVaryTheBestAndRepeatNothing) {
  const Demand demand = make_demand(Collective::allgather, 4e6, 4, 1);
  const std::vector<EngineInfo> engines{find_engine("list")};
  std::vector<Trial> trials;
  for (const auto& batch : first_batches(engines, demand, {}, {})) {
    for (const Candidate& c : batch) {
      EXPECT_EQ(c.chunks, batch.front().chunks);
      trials.push_back({c, c.chunks == 2 ? 1.0 : std::numeric_limits<double>::infinity()});
    }
  }
  for (int round = 1; round < 4; ++round) {
    for (const Candidate& c : next_batch(engines, demand, {}, trials, round)) {
      EXPECT_EQ(c.chunks, 2);
      EXPECT_TRUE(std::none_of(trials.begin(), trials.end(), [&](const Trial& t) {
        return t.candidate.policy == c.policy && t.candidate.seed == c.seed && t.candidate.chunks == c.chunks;
      }));
      trials.push_back({c, 1.0});
    }
  }
}

TEST(Portfolio, ManyChunksAreTriedWithThePoliciesThatDidBest) {
  const Demand demand = make_demand(Collective::allgather, 64e6, 64, 1);
  const std::vector<EngineInfo> engines{find_engine("queue")};
  const auto plan = first_batches(engines, demand, {}, {});
  std::vector<Trial> trials;
  for (const Candidate& c : plan.front()) trials.push_back({c, c.policy == "oldest-full" ? 1.0 : 2.0});
  const auto again = first_batches(engines, demand, {}, trials);
  ASSERT_EQ(again.size(), plan.size());
  EXPECT_EQ(again.front().size(), engines.front().policies.size());
  EXPECT_LT(again.back().size(), engines.front().policies.size());
  EXPECT_EQ(again.back().front().policy, "oldest-full");
}

TEST(Portfolio, RestartsInTheCountsThatRoundDownBest) {
  const Demand demand = make_demand(Collective::allgather, 4e6, 4, 1);
  const std::vector<Trial> trials{{{0, 8}, 100, 200, 50, true}, {{0, 4}, 104, 100, 30, true}};
  SolveOptions options;
  options.min_chunk_bytes = 1e6 / 40;
  const auto level = [](int chunks) { return 90 + 16.0 / chunks; };
  EXPECT_EQ(restart_counts(demand, options, trials, 90, 1, level), (std::vector<int>{8, 16, 32, 40}));
  // 1.1 million sends' worth of work, of which there are 12 deliveries.
  EXPECT_EQ(restart_counts(demand, options, trials, 90, 4166, level), (std::vector<int>{8, 16, 22}));
  const auto one_less = [](int chunks) { return 90 + 16.0 / chunks + (chunks == 24 ? 0 : 3); };
  EXPECT_EQ(restart_counts(demand, options, trials, 90, 1, one_less), (std::vector<int>{8, 16, 24, 40}));
  const auto none = [](int) { return 101.0; };
  EXPECT_TRUE(restart_counts(demand, options, trials, 90, 1, none).empty());
}

TEST(Portfolio, RestartsAreTheBestVariantsAndThenNewSeeds) {
  const Demand demand = make_demand(Collective::allgather, 4e6, 4, 1);
  const std::vector<EngineInfo> engines{find_engine("list"), find_engine("queue")};
  std::vector<Trial> trials{{{0, 1, "rarest", 0}, 1.0}};  // of the engine with more work
  for (const std::string& policy : engines[1].policies)
    trials.push_back({{1, 1, policy, 0}, policy == "nearest" ? 2.0 : 3.0});
  trials.push_back({{1, 2, "furthest", 5}, 2.5});
  const auto variant = [&](std::size_t i) { return restart_candidate(engines, demand, {}, trials, 16, i); };
  EXPECT_EQ(engines[variant(0).engine].name, "queue");
  EXPECT_EQ(variant(0).chunks, 16);
  EXPECT_EQ(variant(0).policy, "nearest");
  EXPECT_EQ(variant(1).policy, "furthest");
  EXPECT_EQ(variant(1).seed, 5U);
  // Of the engine's policies this one has come to the most chunks.
  EXPECT_EQ(variant(4).policy, "furthest");
  EXPECT_EQ(variant(4).seed, 6U);
  EXPECT_EQ(variant(5).policy, "nearest");
}

}  // namespace
}  // namespace rondo::test_portfolio
