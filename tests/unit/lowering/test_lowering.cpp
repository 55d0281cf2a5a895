#include <algorithm>
#include <set>

#include "rondo/core/error.hpp"
#include "schedules.hpp"
#include "topologies.hpp"

/// Schedules that can be followed by hand, and what becomes of them.
namespace rondo::test::test_lowering {
namespace {

using msccl::Buffer;
using msccl::Dependency;
using msccl::Gpu;
using msccl::Program;
using msccl::Range;
using msccl::Step;
using msccl::StepType;
using msccl::ThreadBlock;

/// Links i -> i + 1.
Topology chain(int gpus) {
  std::vector<Link> links;
  for (int g = 0; g + 1 < gpus; ++g) links.push_back(link(g, g + 1));
  return Topology({"chain", "", std::vector<Node>(static_cast<std::size_t>(gpus)), links, {}});
}

std::vector<StepType> types(const ThreadBlock& tb) {
  std::vector<StepType> all;
  for (const Step& step : tb.steps) all.push_back(step.type);
  return all;
}

int count_of(const Program& program, StepType type) {
  int count = 0;
  for (const Gpu& gpu : program.gpus) {
    for (const ThreadBlock& tb : gpu.tbs) {
      count += static_cast<int>(
          std::count_if(tb.steps.begin(), tb.steps.end(), [&](const Step& s) { return s.type == type; }));
    }
  }
  return count;
}

std::size_t most_peers(const Program& program) {
  std::size_t most = 0;
  for (const Gpu& gpu : program.gpus) {
    std::set<int> out, in;
    for (const ThreadBlock& tb : gpu.tbs) {
      if (tb.send_peer >= 0) out.insert(tb.send_peer);
      if (tb.recv_peer >= 0) in.insert(tb.recv_peer);
    }
    most = std::max({most, out.size(), in.size()});
  }
  return most;
}

std::string refusal(ExitCode code, const ProvenSchedule& proven, const LoweringOptions& options) {
  try {
    lower(proven, options);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "not refused";
  return {};
}

TEST(Lowering, ABroadcastDownAChainIsPassedOnAsItComes) {
  const Demand demand = make_demand(Collective::broadcast, 2 * kMB, 3, 2);
  const Program program = lowered(scheduled(chain(3), demand));
  EXPECT_EQ(program.chunks_per_loop, 2);
  EXPECT_EQ(program.num_channels, 1);
  ASSERT_EQ(program.gpus[0].tbs.size(), 2U);
  EXPECT_EQ(types(program.gpus[0].tbs[0]), (std::vector{StepType::send, StepType::send}));
  EXPECT_EQ(types(program.gpus[0].tbs[1]), (std::vector{StepType::copy}));
  EXPECT_EQ(program.gpus[0].tbs[1].steps[0].count, 2);
  ASSERT_EQ(program.gpus[1].tbs.size(), 1U);
  const ThreadBlock& middle = program.gpus[1].tbs[0];
  EXPECT_EQ(middle.recv_peer, 0);
  EXPECT_EQ(middle.send_peer, 2);
  EXPECT_EQ(types(middle), (std::vector{StepType::receive_copy_send, StepType::receive_copy_send}));
  // GPU 2 sends neither chunk on, but if both came as one step GPU 1 would have to wait for both.
  EXPECT_EQ(types(program.gpus[2].tbs[0]), (std::vector{StepType::receive, StepType::receive}));
}

TEST(Lowering, InPlaceTheOwnPartIsInTheOutput) {
  const ProvenSchedule proven =
      scheduled(*one_way_ring(3), make_demand(Collective::allgather, 3 * kMB, 3, 1));
  LoweringOptions options = for_executor();
  EXPECT_EQ(count_of(lowered(proven, options), StepType::copy), 3);
  options.in_place = true;
  const Program program = lowered(proven, options);
  EXPECT_TRUE(program.in_place);
  EXPECT_FALSE(program.out_of_place);
  EXPECT_EQ(count_of(program, StepType::copy), 0);
  std::vector<Range> sources;
  for (const ThreadBlock& tb : program.gpus[2].tbs) {
    for (const Step& step : tb.steps) {
      if (step.type == StepType::send) sources.push_back(step.src);
    }
  }
  EXPECT_NE(std::find(sources.begin(), sources.end(), Range{.buffer = Buffer::output, .offset = 2}),
            sources.end());
  EXPECT_NE(
      refusal(ExitCode::usage, scheduled(chain(3), make_demand(Collective::scatter, 3 * kMB, 3, 1)), options)
          .find("scatter in place"),
      std::string::npos);
}

TEST(Lowering, ARingOfAllGatherIsOneThreadblockAGpu) {
  const Program program =
      lowered(scheduled(*one_way_ring(4), make_demand(Collective::allgather, 4 * kMB, 4, 1)));
  for (const Gpu& gpu : program.gpus) {
    ASSERT_EQ(gpu.tbs.size(), 2U);  // the ring, and the copy of the own part
    EXPECT_EQ(types(gpu.tbs[0]), (std::vector{StepType::send, StepType::receive_copy_send,
                                              StepType::receive_copy_send, StepType::receive}));
  }
}

TEST(Lowering, RelayedDataWaitsInScratchThatIsUsedAgain) {
  // GPU 0 has three chunks for GPU 2 and the second link is the slower one; nothing is passed on at once,
  // for GPU 1 has sends of its own in between.
  const Topology topology({"line", "", std::vector<Node>(3), {link(0, 1, 0.4), link(1, 2, 1)}, {}});
  std::vector<Contribution> contributions;
  for (int k = 0; k < 6; ++k) {
    contributions.push_back({.origin = GpuId{k % 2}, .bytes = kMB, .destinations = {GpuId{2}}});
  }
  const Demand demand(Collective::custom, 6 * kMB, 3, contributions, 1);
  const Program program = lowered(scheduled(topology, demand));
  EXPECT_LT(program.gpus[1].scratch_chunks, 3);
  EXPECT_GE(program.gpus[1].scratch_chunks, 1);
  EXPECT_EQ(program.gpus[1].input_chunks, 3);
  EXPECT_EQ(program.gpus[2].output_chunks, 6);
}

TEST(Lowering, WhatLiesSideBySideIsOneStep) {
  // Four chunks to a GPU that passes none on: nothing is lost if they come together.
  const Topology pair({"pair", "", std::vector<Node>(2), {link(0, 1), link(1, 0)}, {}});
  const Program program = lowered(scheduled(pair, make_demand(Collective::allgather, 8 * kMB, 2, 4)));
  for (const Gpu& gpu : program.gpus) {
    for (const ThreadBlock& tb : gpu.tbs) {
      ASSERT_EQ(tb.steps.size(), 1U);
      EXPECT_EQ(tb.steps[0].count, 4);
    }
  }
}

TEST(Lowering, SwitchesDisappear) {
  for (const Forwarding forwarding : {Forwarding::cut_through, Forwarding::store_and_forward}) {
    const Program program =
        lowered(scheduled(*star(4, forwarding), make_demand(Collective::alltoall, 16 * kMB, 4, 1)));
    EXPECT_EQ(count_of(program, StepType::send), 12);
    EXPECT_EQ(count_of(program, StepType::receive), 12);
    EXPECT_EQ(most_peers(program), 3U);
  }
}

TEST(Lowering, CopiesInASwitchBecomeOneSendEach) {
  // GPU 0 sends once; the switch copies to GPUs 1 and 2.
  const Topology topology = *star(3);
  const Demand demand = make_demand(Collective::broadcast, kMB, 3, 1);
  ProvenSchedule proven = {.topology = topology, .demand = demand, .schedule = {}};
  proven.schedule.sends = {{ChunkId{0}, LinkId{0}, 0, 1000, 1001},
                           {ChunkId{0}, LinkId{4}, 1, 1001, 1002},
                           {ChunkId{0}, LinkId{5}, 1, 1001, 1002}};
  proven.schedule.finish_us = 1002;
  ASSERT_TRUE(replay(topology, demand, proven.schedule.sends).valid());
  const Program program = lowered(proven);
  EXPECT_EQ(program.gpus[0].tbs.size(), 3U);
  EXPECT_EQ(count_of(program, StepType::send), 2);
}

TEST(Lowering, WhatNobodyNeedsIsLeftOut) {
  const Topology topology = *one_way_ring(3);
  const Demand demand = make_demand(Collective::broadcast, kMB, 3, 1);
  ProvenSchedule proven = {.topology = topology, .demand = demand, .schedule = {}};
  for (int hop = 0; hop < 3; ++hop) {  // the last one comes back to the root
    const double start_us = hop * 1001.0;
    proven.schedule.sends.push_back({ChunkId{0}, LinkId{hop}, start_us, start_us + 1000, start_us + 1001});
  }
  ASSERT_TRUE(replay(topology, demand, proven.schedule.sends).valid());
  const Program program = lowered(proven);
  EXPECT_EQ(types(program.gpus[2].tbs[0]), (std::vector{StepType::receive}));
}

TEST(Lowering, InstancesSplitEveryChunk) {
  const ProvenSchedule proven = scheduled(*one_way_ring(3), make_demand(Collective::alltoall, 9 * kMB, 3, 2));
  const Program one = lowered(proven);
  LoweringOptions options = for_executor();
  options.instances = 3;
  const Program three = lowered(proven, options);
  EXPECT_EQ(three.num_channels, 3 * one.num_channels);
  EXPECT_EQ(three.chunks_per_loop, 3 * one.chunks_per_loop);
  EXPECT_EQ(count_of(three, StepType::receive), 3 * count_of(one, StepType::receive));
  EXPECT_EQ(three.gpus[1].scratch_chunks, 3 * one.gpus[1].scratch_chunks);
}

TEST(Lowering, ChunksThatCameAsContributionsOfTheirOwnLieTheSameWay) {
  // As schedules come back from files.
  const Demand demand = make_demand(Collective::allgather, 3 * kMB, 3, 2);
  const ProvenSchedule whole = scheduled(*one_way_ring(3), demand);
  std::vector<Contribution> contributions;
  for (std::size_t c = 0; c < demand.num_chunks(); ++c) {
    Contribution contribution = demand.contribution(ChunkId(c));
    contribution.bytes /= 2;
    contributions.push_back(contribution);
  }
  ProvenSchedule split = whole;
  split.demand = Demand(Collective::allgather, demand.size_bytes(), 3, contributions, 1);
  LoweringOptions options = for_executor();
  for (const int instances : {1, 2}) {
    options.instances = instances;
    EXPECT_EQ(lowered(split, options), lowered(whole, options));
  }
}

TEST(Lowering, DifferentSizesAreCountedInTheirCommonUnit) {
  const Demand demand(Collective::custom, 100, 2,
                      {{.origin = GpuId{0}, .bytes = 40, .destinations = {GpuId{1}}},
                       {.origin = GpuId{0}, .bytes = 60, .destinations = {GpuId{1}}}},
                      1);
  const Program program = lowered(scheduled(chain(2), demand));
  EXPECT_EQ(program.gpus[0].input_chunks, 5);
  EXPECT_EQ(program.gpus[1].output_chunks, 5);
  const Demand odd(Collective::custom, 100, 2,
                   {{.origin = GpuId{0}, .bytes = 40.5, .destinations = {GpuId{1}}},
                    {.origin = GpuId{0}, .bytes = 59.5, .destinations = {GpuId{1}}}},
                   1);
  EXPECT_NE(refusal(ExitCode::unavailable, scheduled(chain(2), odd), for_executor()).find("common unit"),
            std::string::npos);
}

TEST(Lowering, RootedCollectivesHaveTheirLayout) {
  for (const Collective collective : {Collective::scatter, Collective::gather}) {
    const ProvenSchedule proven = scheduled(*star(4), make_demand(collective, 4 * kMB, 4, 2, GpuId{1}));
    EXPECT_EQ(lowered(proven).coll, Collective::custom);  // microsoft/msccl knows neither
    const Program program = lowered(proven, for_executor("msccl-executor-nccl"));
    EXPECT_EQ(program.coll_spelling, to_string(collective));
    EXPECT_EQ(program.chunks_per_loop, 8);
  }
  const ProvenSchedule custom = scheduled(
      chain(2),
      Demand(Collective::custom, 9, 2, {{.origin = GpuId{0}, .bytes = 9, .destinations = {GpuId{1}}}}, 1));
  EXPECT_NE(refusal(ExitCode::unavailable, custom, for_executor("msccl-executor-nccl")).find("custom"),
            std::string::npos);
}

TEST(Lowering, ConnectionsWithManyStepsGoOverSeveralChannels) {
  const ProvenSchedule proven = scheduled(*one_way_ring(3), make_demand(Collective::alltoall, 9 * kMB, 3, 6));
  LoweringOptions options = for_executor();
  options.max_steps = 4;
  const Program program = lowered(proven, options);
  EXPECT_GT(program.num_channels, 1);
  for (const Gpu& gpu : program.gpus) {
    for (const ThreadBlock& tb : gpu.tbs) EXPECT_LE(tb.steps.size(), 4U);
  }
}

TEST(Lowering, PeersAreLimitedByRelays) {
  const ProvenSchedule proven = scheduled(*star(16), make_demand(Collective::alltoall, 256 * kMB, 16, 1));
  EXPECT_EQ(most_peers(lowered(proven)), 15U);
  LoweringOptions options = for_executor();
  options.max_peers = 6;
  const Program program = lowered(proven, options);
  EXPECT_LE(most_peers(program), 6U);
  options.max_peers = 5;
  EXPECT_NE(refusal(ExitCode::unavailable, proven, options).find("allow at least 6"), std::string::npos);
}

TEST(Lowering, CapsAreNamedWithFigureAndRemedy) {
  // 40 peers, one connection each: 32 of them on the first channel.
  const ProvenSchedule wide = scheduled(*star(41), make_demand(Collective::alltoall, 41 * kMB, 41, 1));
  EXPECT_EQ(lowered(wide).num_channels, 2);
  LoweringOptions options = for_executor();
  options.instances = 3;
  const std::string message = refusal(ExitCode::unavailable, wide, options);
  EXPECT_NE(message.find("msccl takes at most 216 as threadblocks of a GPU, but gpu 0 has 241"),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("--max-peers"), std::string::npos) << message;
  options.max_peers = 12;
  lowered(wide, options);
}

TEST(Lowering, OptionsAreChecked) {
  const ProvenSchedule proven = scheduled(chain(2), make_demand(Collective::broadcast, kMB, 2, 1));
  LoweringOptions options = for_executor();
  options.instances = 0;
  refusal(ExitCode::usage, proven, options);
  options = for_executor();
  options.name = std::string(64, 'n');
  refusal(ExitCode::usage, proven, options);
  options = for_executor();
  options.min_bytes = 5;
  options.max_bytes = 4;
  refusal(ExitCode::usage, proven, options);
}

}  // namespace
}  // namespace rondo::test::test_lowering
