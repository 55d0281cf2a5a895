#include <filesystem>

#include "expect_error.hpp"
#include "rondo/core/transfers.hpp"
#include "rondo/msccl/xml.hpp"
#include "schedules.hpp"
#include "sum_schedules.hpp"
#include "topologies.hpp"

/// Schedules that combine, and the programs that they become.
namespace rondo::test::test_sums {
namespace {

using msccl::Gpu;
using msccl::Program;
using msccl::Step;
using msccl::StepType;
using msccl::ThreadBlock;

Topology ring_of(int gpus) {
  return *one_way_ring(gpus);
}
Topology full_of(int gpus) {
  return *generated("full", {{"gpus", std::to_string(gpus)}});
}

std::vector<std::string> step_names(const ThreadBlock& tb) {
  std::vector<std::string> all;
  for (const Step& step : tb.steps) all.emplace_back(to_string(step.type));
  return all;
}

int steps_of(const Program& program, StepType type) {
  int number = 0;
  for (const Gpu& gpu : program.gpus) {
    for (const ThreadBlock& tb : gpu.tbs)
      number += static_cast<int>(std::ranges::count(tb.steps, type, &Step::type));
  }
  return number;
}

Program lowered_in_place(const ProvenSchedule& proven) {
  LoweringOptions options = for_executor();
  options.in_place = true;
  return lowered(proven, options);
}

TEST(LoweringSums, ARingReduceScatterPassesSumsOnWithoutKeepingThem) {
  const Topology ring = ring_of(4);
  const ProvenSchedule proven =
      in_rounds(ring, make_demand(Collective::reduce_scatter, 4 * kMB, 4, 1), ring_sums(4, 1, false));
  const Program program = lowered(proven);
  EXPECT_EQ(program.redop, "sum");
  EXPECT_EQ(program.chunks_per_loop, 4);
  for (const Gpu& gpu : program.gpus) {
    ASSERT_EQ(gpu.tbs.size(), 1U);
    EXPECT_EQ(step_names(gpu.tbs[0]), (std::vector<std::string>{"s", "rrs", "rrs", "rrc"}));
    EXPECT_EQ(gpu.input_chunks, 4);
    EXPECT_EQ(gpu.output_chunks, 1);
    EXPECT_EQ(gpu.scratch_chunks, 0);
  }
  lowered_in_place(proven);
}

TEST(LoweringSums, ARingAllReduceSpreadsTheSumAsItIsDone) {
  const ProvenSchedule proven =
      in_rounds(ring_of(4), make_demand(Collective::allreduce, 4 * kMB, 4, 4), ring_sums(4, 1, true));
  const Program program = lowered(proven);
  for (const Gpu& gpu : program.gpus) {
    ASSERT_EQ(gpu.tbs.size(), 1U);
    EXPECT_EQ(step_names(gpu.tbs[0]),
              (std::vector<std::string>{"s", "rrs", "rrs", "rrcs", "rcs", "rcs", "r"}));
  }
  const Program in_place = lowered_in_place(proven);
  EXPECT_TRUE(in_place.in_place);
  for (const Gpu& gpu : in_place.gpus) {
    for (const Step& step : gpu.tbs[0].steps) {
      if (msccl::reads_source(step.type)) {
        EXPECT_EQ(step.src.buffer, msccl::Buffer::output);
      }
    }
  }
}

TEST(LoweringSums, ATreeAddsInTheOutputOfItsRootAndInScratchElsewhere) {
  const ProvenSchedule proven =
      in_rounds(full_of(8), make_demand(Collective::reduce, 8 * kMB, 8, 2), tree_sums(8, 2, false));
  const Program program = lowered(proven);
  for (const bool in_place : {false, true}) {
    const Program one = in_place ? lowered_in_place(proven) : program;
    EXPECT_EQ(one.gpus[0].scratch_chunks, 0);
    EXPECT_EQ(one.gpus[4].scratch_chunks, 2);  // adds two subtrees, keeps the first sum
    EXPECT_EQ(one.gpus[2].scratch_chunks, 0);  // adds one and passes the sum on
    EXPECT_EQ(one.gpus[1].scratch_chunks, 0);
    EXPECT_EQ(steps_of(one, StepType::receive), 0);
  }
}

TEST(LoweringSums, PartnersSendTheirSumsBeforeTheyAddTheOthers) {
  const Topology full = full_of(8);
  for (const int chunks : {1, 3}) {
    const ProvenSchedule halving = in_rounds(full, make_demand(Collective::allreduce, 8 * kMB, 8, 8 * chunks),
                                             halving_sums(8, chunks, true));
    lowered(halving);
    lowered_in_place(halving);
    const ProvenSchedule scatter = in_rounds(
        full, make_demand(Collective::reduce_scatter, 8 * kMB, 8, chunks), halving_sums(8, chunks, false));
    lowered(scatter);
    lowered_in_place(scatter);
    const ProvenSchedule doubling =
        in_rounds(full, make_demand(Collective::allreduce, 8 * kMB, 8, chunks), doubling_sums(8, chunks));
    lowered(doubling);
    lowered_in_place(doubling);
  }
}

TEST(LoweringSums, ChunksThatGoTogetherAreOneStep) {
  // All chunks of a part in each round: one send with their count, since nothing needs the first one sooner.
  const ProvenSchedule proven =
      in_rounds(full_of(4), make_demand(Collective::allreduce, 4 * kMB, 4, 8), doubling_sums(4, 8));
  const Program program = lowered(proven);
  for (const Gpu& gpu : program.gpus) {
    for (const ThreadBlock& tb : gpu.tbs) {
      for (const Step& step : tb.steps) EXPECT_EQ(step.count, step.type == StepType::nop ? 0 : 8);
    }
  }
  EXPECT_EQ(steps_of(program, StepType::send), 4);
  EXPECT_EQ(steps_of(program, StepType::receive_reduce_copy_send), 4);
}

TEST(LoweringSums, InstancesSplitEveryChunk) {
  LoweringOptions options = for_executor();
  options.instances = 2;
  for (const bool in_place : {false, true}) {
    options.in_place = in_place;
    const ProvenSchedule proven =
        in_rounds(ring_of(4), make_demand(Collective::allreduce, 4 * kMB, 4, 4), ring_sums(4, 1, true));
    EXPECT_EQ(lowered(proven, options).chunks_per_loop, 8);
    lowered(in_rounds(full_of(4), make_demand(Collective::reduce_scatter, 4 * kMB, 4, 2),
                      halving_sums(4, 2, false)),
            options);
    lowered(in_rounds(full_of(8), make_demand(Collective::reduce, 4 * kMB, 8, 2), tree_sums(8, 2, false)),
            options);
  }
}

TEST(LoweringSums, TheReductionIsNamed) {
  const ProvenSchedule proven =
      in_rounds(ring_of(3), make_demand(Collective::reduce_scatter, 3 * kMB, 3, 1), ring_sums(3, 1, false));
  LoweringOptions options = for_executor("msccl-executor-nccl");
  options.redop = "max";
  const Program program = lowered(proven, options);
  EXPECT_EQ(program.redop, "max");
  EXPECT_EQ(program.coll_spelling, "reducescatter");
  options.redop = "avg";
  expect_error(ExitCode::usage, {"--redop is 'avg'", "sum, prod, max, min"}, [&] { lower(proven, options); });
}

/// Sums of some GPUs' data for some others, relayed by a GPU that gives nothing to them.
TEST(LoweringSums, CustomDemandsRelayAndAddOverOthers) {
  const auto gpus = [](std::vector<int> numbers) {
    std::vector<GpuId> all;
    for (const int g : numbers) all.push_back(GpuId{g});
    return all;
  };
  const Demand demand(Collective::custom, 5 * kMB, 4,
                      {{.origin = GpuId{0},
                        .bytes = 3 * kMB,
                        .destinations = gpus({2, 3}),
                        .sources = gpus({0, 1}),
                        .reduce = true},
                       {.origin = GpuId{1},
                        .bytes = 2 * kMB,
                        .destinations = gpus({2}),
                        .sources = gpus({0, 1}),
                        .reduce = false}},
                      1);
  const Topology full = full_of(4);
  // GPU 2, which gives nothing, takes what GPU 0 sends, adds what GPU 1 sends and passes the sum on.
  const ProvenSchedule proven =
      in_rounds(full, demand, {{{0, 0, 2}, {1, 1, 2, SendOp::copy}}, {{0, 1, 2}}, {{0, 2, 3, SendOp::copy}}});
  const Program program = lowered(proven);
  EXPECT_EQ(steps_of(program, StepType::receive_reduce_copy) +
                steps_of(program, StepType::receive_reduce_copy_send),
            1);
  EXPECT_EQ(program.gpus[2].output_chunks, 5);
  EXPECT_EQ(program.gpus[1].input_chunks, 5);
}

TEST(LoweringSums, ASwitchThatAddsIsRefusedByName) {
  std::vector<Node> nodes(3);
  nodes.push_back(network_switch());
  nodes.back().name = "sharp";
  nodes.back().reduce = true;
  const Topology topology = *fabric(nodes, {link(0, 3), link(1, 3), link(2, 3), link(3, 2)});
  const Demand demand = make_demand(Collective::reduce, kMB, 3, 1, GpuId{2});
  ProvenSchedule proven{.topology = topology, .demand = demand, .schedule = {}};
  for (const int l : {0, 1}) {
    proven.schedule.sends.push_back({.chunk = ChunkId{0},
                                     .link = LinkId{l},
                                     .end_us = 1000,
                                     .arrival_us = 1001,
                                     .op = SendOp::reduce,
                                     .transfer = 0});
  }
  proven.schedule.sends.push_back({.chunk = ChunkId{0},
                                   .link = LinkId{3},
                                   .start_us = 1,
                                   .end_us = 1001,
                                   .arrival_us = 1002,
                                   .op = SendOp::reduce,
                                   .transfer = 0});
  proven.schedule.finish_us = 1002;
  EXPECT_EQ(transfers_of(topology, demand, proven.schedule.sends).deliveries.size(), 2U);
  expect_error(ExitCode::unavailable, {"switch 3 (sharp) adds", "\"reduce\": false"},
               [&] { lower(proven, for_executor()); });
}

TEST(LoweringSums, WhatGpusHoldAtFirstAndRelaysAreRefused) {
  const std::vector<GpuId> all = {GpuId{0}, GpuId{1}, GpuId{2}};
  const Demand held(Collective::custom, kMB, 3,
                    {{.origin = GpuId{0},
                      .bytes = kMB,
                      .destinations = {GpuId{0}},
                      .sources = all,
                      .reduce = true,
                      .held = {{GpuId{1}, {GpuId{1}, GpuId{2}}}, {GpuId{2}, {GpuId{2}}}}}},
                    1);
  expect_error(ExitCode::unavailable, {"GPU 1 holds a partial sum at first"}, [&] {
    lower(in_rounds(full_of(3), held, {{{0, 1, 0}}}), for_executor());
  });
  LoweringOptions options = for_executor();
  options.max_peers = 2;
  expect_error(ExitCode::unavailable, {"--max-peers 2", "3 peers", "partial sums cannot be relayed"}, [&] {
    lower(in_rounds(full_of(8), make_demand(Collective::allreduce, kMB, 8, 8), halving_sums(8, 1, true)),
          options);
  });
}

TEST(LoweringSums, OnEveryShippedFabric) {
  int fabrics = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(RONDO_SOURCE_DIR) / "jobs/topologies")) {
    Topology topology = load_topology(entry.path().stem().string());
    if (topology.num_gpus() > 32) continue;
    // Run backwards, switches that copy would have to add.
    TopologyData data = topology.data();
    for (Node& node : data.nodes) node.multicast = false;
    topology = Topology(data);
    for (const Collective collective :
         {Collective::reduce_scatter, Collective::allreduce, Collective::reduce}) {
      SCOPED_TRACE(topology.name() + " " + std::string(to_string(collective)));
      const ProvenSchedule proven = combined(topology, collective, 2);
      const Program program = lowered(proven);
      EXPECT_EQ(msccl::parse_xml(msccl::write_xml(program)), program);
      lowered_in_place(proven);
    }
    ++fabrics;
  }
  EXPECT_GE(fabrics, 6);
}

}  // namespace
}  // namespace rondo::test::test_sums
