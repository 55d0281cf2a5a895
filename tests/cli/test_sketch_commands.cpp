#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "program.hpp"

/// --profile, --sketch, rondo sketch check and engine route.
namespace rondo::test::test_sketch_commands {
namespace {

using Json = nlohmann::json;

class SketchCommands : public ProgramTest {
 protected:
  std::string succeed(const std::string& arguments, int ranks = 1) const {
    return ProgramTest::succeed(split(arguments), ranks);
  }
  std::string fail(int exit_code, const std::string& arguments) const {
    const Outcome outcome = rondo(split(arguments));
    EXPECT_EQ(outcome.exit_code, exit_code) << arguments << ": " << outcome.err;
    return outcome.err;
  }
  /// Two nodes of a profile with a sketch.
  static std::string fabric(const std::string& node, const std::string& sketch) {
    const std::string jobs = std::string(RONDO_SOURCE_DIR) + "/jobs/";
    return " --profile " + jobs + "profiles/" + node + ".json --profile-chunk 1MB --sketch " + jobs +
           "sketches/" + sketch + ".json ";
  }
  Json report() const { return Json::parse(read_file(at("run/report.json"))); }

  /// What a run's schedule sends from GPU to GPU, switches passed over.
  struct Transfer {
    int chunk;
    int src;
    int dst;
    double start_us;
    friend auto operator<=>(const Transfer&, const Transfer&) = default;
  };
  std::vector<Transfer> transfers() const {
    succeed("export run --format msccl-json --output run.json");
    std::vector<Transfer> all;
    for (const Json& step : Json::parse(read_file(at("run.json")))["steps"]) {
      for (const Json& send : step["sends"]) all.push_back({send[0], send[1], send[2], 0});
    }
    return all;
  }
};

TEST_F(SketchCommands, RouteHeedsWhoSendsAndTheSymmetry) {
  const std::string problem = "solve" + fabric("ndv2", "ndv2-sk-1") +
                              "--collective allgather --size 1MB --engine route --force --output run";
  std::set<std::string> digests;
  for (const int ranks : {1, 2}) {
    succeed(problem, ranks);
    digests.insert(report()["schedule_digest"]);
  }
  EXPECT_EQ(digests.size(), 1U);
  EXPECT_EQ(report()["chunks"], 1);
  EXPECT_LE(report()["metrics"]["contiguous_finish_us"], report()["metrics"]["ordered_finish_us"]);
  succeed("verify run");
  EXPECT_TRUE(
      contains(succeed(problem.substr(0, problem.find(" --force")) + " --output run"), "already solved"));
  for (const Transfer& t : transfers()) {
    if (t.src / 8 == t.dst / 8) continue;
    EXPECT_EQ(t.src % 8, 0);
    EXPECT_EQ(t.dst % 8, 1);
  }
  // Routes are as the sketch's symmetry has them.
  std::set<Transfer> sent;
  for (const Transfer& t : transfers()) sent.insert(t);
  for (const Transfer& t : sent)
    EXPECT_TRUE(sent.contains({(t.chunk + 8) % 16, (t.src + 8) % 16, (t.dst + 8) % 16, 0})) << t.chunk;
}

TEST_F(SketchCommands, SendersAreForTheirGpus) {
  succeed("solve" + fabric("dgx2", "dgx2-sk-1") +
          "--collective allgather --size 64KB --engine route --max-nodes 0 --output run");
  succeed("verify run");
  EXPECT_EQ(report()["chunks"], 2);
  for (const Transfer& t : transfers()) {
    const int origin = t.chunk / 2;
    if (t.src / 16 == t.dst / 16) continue;
    EXPECT_EQ(t.src % 2, 1);
    EXPECT_EQ(t.dst % 16, t.src % 16 - 1);
    EXPECT_EQ(t.src, origin / 2 * 2 + 1) << origin;
  }
}

TEST_F(SketchCommands, EveryEngineHeedsLinksAndTheRestIsRefusedByName) {
  const std::string problem = "solve" + fabric("ndv2", "ndv2-sk-1") + "--size 1MB --output run --collective ";
  const std::string refused = fail(69, problem + "allgather --engine list");
  EXPECT_TRUE(contains(refused, "symmetry_offsets") && contains(refused, "--sketch-parts links")) << refused;
  EXPECT_FALSE(std::filesystem::exists(at("run/problem.json")));
  succeed(problem + "allgather --engine list --improve-work 0 --sketch-parts links --force");
  for (const Transfer& t : transfers()) {
    EXPECT_TRUE(t.src / 8 == t.dst / 8 || (t.src % 8 == 0 && t.dst % 8 == 1)) << t.src << " to " << t.dst;
  }
  succeed(problem + "reduce_scatter --engine route --force");
  succeed("verify run");
  succeed(problem + "allreduce --engine route --force");
  succeed("verify run");
  EXPECT_TRUE(
      contains(fail(64, problem + "allgather --engine route --chunks 3 --force"), "input_chunkup says 1"));
  EXPECT_TRUE(contains(fail(64, problem + "allgather --sketch-parts some --force"), "all or links"));
  EXPECT_TRUE(contains(
      fail(64, "solve --topology dgx1 --collective allgather --size 1MB --sketch-parts links --output x"),
      "there is no sketch"));
  EXPECT_TRUE(contains(fail(64, problem + "allgather --topology dgx1 --force"), "--topology and --profile"));
  EXPECT_TRUE(
      contains(fail(65, problem + "broadcast --engine route --force"), "symmetry_offsets has [8, 16]"));
  const std::string relayed = fail(69, "solve" + fabric("dgx2", "dgx2-sk-1") +
                                           "--size 1MB --collective allreduce --engine route --output y");
  EXPECT_TRUE(contains(relayed, "gpus_to_sender_rev_map")) << relayed;
}

TEST_F(SketchCommands, RouteNeedsNoSketch) {
  for (const std::string collective : {"alltoall", "broadcast", "reduce_scatter"}) {
    succeed(
        "solve --topology dgx1 --size 1MB --engine route --max-nodes 20 --force --output run --chunks 8 "
        "--collective " +
        collective);
    succeed("verify run");
  }
  EXPECT_TRUE(
      contains(fail(64,
                    "solve --topology dgx1 --size 1MB --engine list --max-nodes 2 --collective allgather "
                    "--output x"),
               "route"));
}

TEST_F(SketchCommands, CheckSaysWhatASketchForbidsAndCosts) {
  const std::string said =
      succeed("sketch check" + fabric("ndv2", "ndv2-sk-1") + "--collective allgather --size 1GB");
  EXPECT_TRUE(contains(said, "2 nodes of 8 GPUs")) << said;
  EXPECT_TRUE(contains(said, "2 of 128 between nodes")) << said;
  EXPECT_TRUE(contains(said, "route alone: symmetry_offsets")) << said;
  EXPECT_TRUE(contains(said, "it costs 0.00 %")) << said;
  const std::string bound =
      succeed("bound" + fabric("ndv2", "ndv2-sk-1") + "--collective allgather --size 1GB");
  EXPECT_TRUE(contains(bound, "us")) << bound;
  write_file(at("bad.json"), R"({"nnodes": 2, "intranode_sketch": {"strategy": "none"}})");
  EXPECT_TRUE(
      contains(fail(65, "sketch check --sketch bad.json --topology ndv2-2 --collective allgather --size 1GB"),
               "internode_sketch is missing"));
  EXPECT_TRUE(contains(
      fail(66, "bound --sketch gone.json --topology ndv2-2 --collective allgather --size 1GB"), "gone.json"));
  EXPECT_TRUE(contains(fail(65, "bound --profile bad.json --collective allgather --size 1GB"), "bad.json"));
  EXPECT_TRUE(contains(fail(64, "bound --topology dgx1 --profile-unit 2 --collective allgather --size 1GB"),
                       "give --profile"));
}

}  // namespace
}  // namespace rondo::test::test_sketch_commands
