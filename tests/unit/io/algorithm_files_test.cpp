#include "rondo/io/algorithm_files.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "expect_error.hpp"
#include "rondo/core/generators.hpp"
#include "rondo/core/replay.hpp"

namespace rondo::algorithm_files_test {
namespace {

/// "[[0,0,1],[1,1,2]]" of (addr, src, dst), with `rest` behind each.
using Step = std::vector<std::array<int, 3>>;

Json algorithm(const std::string& collective, int gpus, const std::vector<std::pair<int, int>>& chunks,
               const std::vector<Step>& steps) {
  Json json = {{"msccl_type", "algorithm"},
               {"name", "by hand"},
               {"instance", {{"msccl_type", "instance"}, {"steps", steps.size()}, {"pipeline", nullptr}}},
               {"input_map", Json::object()},
               {"output_map", Json::object()},
               {"steps", Json::array()},
               {"topology", {{"msccl_type", "topology"}}}};
  for (const Step& step : steps)
    json["steps"].push_back({{"msccl_type", "step"}, {"rounds", 1}, {"sends", step}});
  Json all = Json::array();
  for (int g = 0; g < gpus; ++g) all.push_back(g);
  Json list = Json::array();
  for (const auto& [pre, addr] : chunks)
    list.push_back({{"msccl_type", "chunk"}, {"pre", {pre}}, {"post", all}, {"addr", addr}});
  json["collective"] = {
      {"msccl_type", "collective"}, {"name", collective},      {"nodes", gpus}, {"chunks", list},
      {"triggers", Json::object()}, {"runtime_name", "custom"}};
  return json;
}

/// SCCL, Figure 2: recursive doubling on a ring of 4, in 2 steps and 3 rounds.
Json doubling() {
  return algorithm(
      "Allgather(n=4)", 4, {{0, 0}, {1, 1}, {2, 2}, {3, 3}},
      {{{0, 0, 1}, {1, 1, 0}, {2, 2, 3}, {3, 3, 2}},
       {{0, 0, 3}, {1, 0, 3}, {2, 3, 0}, {3, 3, 0}, {0, 1, 2}, {1, 1, 2}, {2, 2, 1}, {3, 2, 1}}});
}

/// Sums go around a ring of 3, then their results.
Json ring_of_sums() {
  std::vector<std::pair<int, int>> chunks;
  for (int a = 0; a < 3; ++a) {
    for (int g = 0; g < 3; ++g) chunks.emplace_back(g, a);
  }
  std::vector<Step> steps;
  for (int s = 0; s < 4; ++s) {
    steps.emplace_back();
    for (int g = 0; g < 3; ++g) steps.back().push_back({(g - s + 6) % 3, g, (g + 1) % 3});
  }
  return algorithm("Allreduce(n=3),chunks=3", 3, chunks, steps);
}

double finish_us(const Algorithm& algorithm, const std::string& fabric) {
  const Topology topology = generate_topology(fabric);
  const Schedule schedule = timed(algorithm, topology, true);
  const ReplayResult replayed = replay(topology, algorithm.demand, schedule.sends);
  EXPECT_TRUE(replayed.valid()) << *replayed.violation;
  return replayed.finish_us;
}

TEST(AlgorithmFiles, StepsAreTimedByHand) {
  const Algorithm read = algorithm_from_json(doubling(), 40'000);
  EXPECT_EQ(read.demand.collective(), Collective::allgather);
  EXPECT_EQ(read.demand.chunks_per_contribution(), 1);
  // 10 KB at 10 GB/s take 1 us: one round and then two, each step 1 us on its way.
  EXPECT_NEAR(finish_us(read, "ring:gpus=4,bandwidth_GBps=10,latency_us=1"), 1 + 1 + 2 + 1, 1e-9);
}

TEST(AlgorithmFiles, SumsAreAddedOrCopiedAsTheyHaveToBe) {
  const Algorithm read = algorithm_from_json(ring_of_sums(), 30'000);
  EXPECT_EQ(read.demand.collective(), Collective::allreduce);
  EXPECT_EQ(read.demand.num_chunks(), 3U);
  for (const AlgorithmSend& send : read.sends)
    EXPECT_EQ(send.op, send.step < 2 ? SendOp::reduce : SendOp::copy) << send.step;
  EXPECT_NEAR(finish_us(read, "ring:gpus=3,bandwidth_GBps=10,latency_us=1"), 4 * 2, 1e-9);
}

TEST(AlgorithmFiles, BothDialectsComeBack) {
  for (const auto& [json, fabric] :
       {std::pair(doubling(), "ring:gpus=4"), std::pair(ring_of_sums(), "ring:gpus=3")}) {
    const Algorithm read = algorithm_from_json(json, 12'000);
    const Topology topology = generate_topology(fabric);
    const ProvenSchedule proven{topology, read.demand, timed(read, topology, true)};
    for (const AlgorithmDialect dialect : {AlgorithmDialect::msccl, AlgorithmDialect::taccl}) {
      const Json written = algorithm_to_json(proven, dialect);
      EXPECT_EQ(written.contains("sccl_type"), dialect == AlgorithmDialect::taccl);
      const Algorithm again = algorithm_from_any_json(written, 12'000);
      EXPECT_EQ(again.demand.collective(), read.demand.collective());
      EXPECT_EQ(again.sends.size(), read.sends.size());
      // In the order of its times, which may do better than the file's.
      EXPECT_LE(finish_us(again, fabric), finish_us(read, fabric) + 1e-9);
    }
  }
}

TEST(AlgorithmFiles, AlltoallHasAddressesAsMscclToolsHasThem) {
  const Topology topology = generate_topology("full:gpus=3");
  const Demand demand = make_demand(Collective::alltoall, 9'000, 3, 1);
  Algorithm direct{"direct", demand, {}};
  for (std::size_t c = 0; c < demand.num_chunks(); ++c) {
    const ChunkId chunk(c);
    direct.sends.push_back({chunk, demand.origin(chunk), demand.destinations(chunk).front()});
  }
  settle(direct, [](std::size_t) { return ""; });
  const Json written =
      algorithm_to_json({topology, demand, timed(direct, topology, true)}, AlgorithmDialect::msccl);
  for (const Json& send : written.at("steps").at(0).at("sends"))
    EXPECT_EQ(send.at(0).get<int>(), send.at(2).get<int>() * 3 + send.at(1).get<int>());
  EXPECT_EQ(written.at("collective").at("name"), "Alltoall(n=3)");
  EXPECT_EQ(algorithm_from_json(written, 9'000).demand.collective(), Collective::alltoall);
}

TEST(AlgorithmFiles, WhatDoesNotWorkIsNamed) {
  const auto refused = [](const std::vector<std::string>& parts, const std::function<void(Json&)>& damage,
                          ExitCode code = ExitCode::bad_data) {
    Json json = doubling();
    damage(json);
    expect_error(code, parts, [&] { algorithm_from_any_json(json, 1000); });
  };
  refused({"steps[0].sends[0]", "GPU 2", "chunk 0", "holds nothing"}, [](Json& json) {
    json["steps"][0]["sends"][0] = {0, 2, 1};
  });
  refused({"GPU 0 never gets chunk 2"}, [](Json& json) { json["steps"][1]["sends"].erase(2); });
  refused({"steps[1].sends[3]", "src is 4", "0 to 3"},
          [](Json& json) { json["steps"][1]["sends"][3][1] = 4; });
  refused({"addr is 9"}, [](Json& json) { json["steps"][0]["sends"][0][0] = 9; });
  refused({"steps[0].sends[1]", "src and dst are both 1"}, [](Json& json) {
    json["steps"][0]["sends"][1] = {1, 1, 1};
  });
  refused({"steps[0].sends[1]", "no list"}, [](Json& json) { json["steps"][0]["sends"][1] = {1, 1}; });
  refused(
      {"instance: pipeline", "overlap"}, [](Json& json) { json["instance"]["pipeline"] = 2; },
      ExitCode::unavailable);
  refused(
      {"triggers"},
      [](Json& json) {
        json["collective"]["triggers"]["0"] = {{"1", 2}};
      },
      ExitCode::unavailable);
  refused({"collective.chunks[0]", "post"},
          [](Json& json) { json["collective"]["chunks"][0]["post"] = {7}; });
  refused({"nodes"}, [](Json& json) { json["collective"]["nodes"] = 1; });
  refused({"speed"}, [](Json& json) { json["speed"] = 1; });
  refused({"neither msccl_type"}, [](Json& json) { json = Json::object(); });

  Json twice = ring_of_sums();
  twice["steps"][1]["sends"][0] = {0, 0, 1};
  expect_error(ExitCode::bad_data, {"steps[1].sends[0]", "GPU 1", "twice"},
               [&] { algorithm_from_json(twice, 1000); });
  Json unfinished = ring_of_sums();
  unfinished["steps"].erase(3);
  expect_error(ExitCode::bad_data, {"has the parts of"}, [&] { algorithm_from_json(unfinished, 1000); });

  expect_error(ExitCode::bad_data, {"4 GPUs", "has 3"},
               [&] { timed(algorithm_from_json(doubling(), 1000), generate_topology("ring:gpus=3"), true); });
  Json across = doubling();
  across["steps"][0]["sends"].push_back({0, 0, 2});
  expect_error(ExitCode::bad_data, {"from GPU 0 to GPU 2", "neither a link nor switches"},
               [&] { timed(algorithm_from_json(across, 1000), generate_topology("ring:gpus=4"), true); });
}

Json teccl(const std::string& last) {
  return {{"6-Demand_Met",
           {{"GPU 1", {{"GPU 2", {{"Chunk 0", 1.0}}}, {"GPU 4", {{"Chunk 0", 2.0}}}}},
            {"GPU 2", {{"GPU 1", {{"Chunk 0", 1.0}}}, {"GPU 4", {{"Chunk 0", 1.0}}}}},
            {"GPU 4", {{"GPU 1", {{"Chunk 0", 1.0}}}, {"GPU 2", {{"Chunk 0", 1.0}}}}}}},
          {"7-Flows",
           {"Chunk 0 from 1 traveled over 1->2 in epoch 0 via switches 0 -> 3",
            "Chunk 0 from 2 traveled over 2->1 in epoch 0", "Chunk 0 from 4 traveled over 4->2 in epoch 0",
            "Chunk 0 from 1 traveled over 1->4 with volume 1.0 in epoch 1",
            "Chunk 0 from 2 traveled over 2->4 in epoch 2", last}}};
}

TEST(AlgorithmFiles, SchedulesOfTeccl) {
  const Algorithm read =
      algorithm_from_any_json(teccl("Chunk 0 from 4 traveled over 2->1 in epoch 3"), 30'000);
  EXPECT_EQ(read.demand.collective(), Collective::allgather);
  // Nodes 1, 2 and 4 are GPUs 0, 1 and 2: 0 and 3 are switches.
  EXPECT_EQ(read.sends.back().src, GpuId{1});
  EXPECT_EQ(read.sends.back().dst, GpuId{0});
  EXPECT_NEAR(finish_us(read, "full:gpus=3,bandwidth_GBps=10,latency_us=1"), 4, 1e-9);
  const auto refused = [](const std::string& last, const std::vector<std::string>& parts,
                          ExitCode code = ExitCode::bad_data) {
    expect_error(code, parts, [&] { algorithm_from_any_json(teccl(last), 1000); });
  };
  refused("Chunk 0 from 4 traveled over 2->1 with volume 0.5 in epoch 3", {"7-Flows[5]", "whole"},
          ExitCode::unavailable);
  refused("Chunk 0 from 4 went over 2->1 in epoch 3", {"7-Flows[5]", "traveled over"});
  refused("Chunk 0 from 4 traveled over 3->1 in epoch 3", {"7-Flows[5]", "node 3 is no GPU"});
  refused("Chunk 1 from 4 traveled over 4->1 in epoch 3", {"7-Flows[5]", "nobody wants chunk 1 from 4"});
  refused("Chunk 0 from 2 traveled over 2->1 in epoch 3", {"GPU 0 never gets chunk 2"});
  Json astar = teccl("");
  astar.erase("6-Demand_Met");
  expect_error(ExitCode::bad_data, {"6-Demand_Met and 8-Chunk paths are missing"},
               [&] { algorithm_from_any_json(astar, 1000); });
}

}  // namespace
}  // namespace rondo::algorithm_files_test
