#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "program.hpp"

/// Groups and counts through all commands.
namespace rondo::test::test_shape_commands {
namespace {

using Json = nlohmann::json;

/// On a mesh of 2 x 3; any schedule is good enough.
std::vector<std::string> solve_mesh(const std::string& more) {
  return split("solve --topology mesh:dims=2x3 --gap 100% --force --output out " + more);
}

using Shapes = ProgramTest;

TEST_F(Shapes, APlainProblemSaysNothingOfThem) {
  succeed(solve_mesh("--collective allgather --size 6KB --group 0-5"));
  for (const char* file : {"out/problem.json", "out/report.json"}) {
    for (const char* key : {"group", "counts", "relay"})
      EXPECT_FALSE(read_json(at(file)).contains(key)) << file;
  }
  succeed(split("export out --format json --output s.json"));
  EXPECT_EQ(read_json(at("s.json"))["version"], 1);
}

TEST_F(Shapes, AGroupIsKeptInEveryFileAndOnAnyNumberOfRanks) {
  std::set<std::string> digests;
  for (const int ranks : {1, 2}) {
    succeed(solve_mesh("--collective broadcast --size 6KB --group 1,3,5"), ranks);
    digests.insert(read_json(at("out/report.json"))["schedule_digest"]);
  }
  EXPECT_EQ(digests.size(), 1U);
  EXPECT_EQ(read_json(at("out/problem.json"))["root"], 1);  // the group's first
  for (const char* file : {"out/problem.json", "out/report.json"})
    EXPECT_EQ(read_json(at(file))["group"].dump(), "[1,3,5]") << file;
  EXPECT_TRUE(contains(succeed({"verify", "out"}), "broadcast of 6 KB over GPUs 1,3,5 on mesh"));
  EXPECT_TRUE(contains(succeed({"info", "out"}), "broadcast of 6 KB over GPUs 1,3,5"));
  EXPECT_TRUE(contains(succeed(split("replay out --size 12KB --output r.json")), "there:"));
  EXPECT_EQ(read_json(at("r.json"))["group"].dump(), "[1,3,5]");
  EXPECT_TRUE(contains(succeed({"verify", "r.json"}), "broadcast of 12 KB over GPUs 1,3,5"));
  // Another problem is not answered with this one's result.
  const Outcome other =
      run(split("solve --topology mesh:dims=2x3 --gap 100% --output out --collective broadcast "
                "--size 6KB --group 1,3,4"),
          1, at(""));
  EXPECT_EQ(other.exit_code, 65) << other.err;
  EXPECT_TRUE(contains(other.err, "group")) << other.err;
}

TEST_F(Shapes, BoundsAreThoseThatSolveReports) {
  for (const std::string relay : {"any", "none"}) {
    const std::string shape = "--collective allgather --size 6MB --group 0,1,2 --relay " + relay;
    const Json bounds =
        Json::parse(succeed(split("bound --topology mesh:dims=2x3 --json " + shape)))["lower_bounds"];
    succeed(solve_mesh(shape));
    EXPECT_EQ(bounds[0]["us"], read_json(at("out/report.json"))["lower_bound_us"]) << relay;
    succeed({"verify", "out"});
  }
}

// Without relays the program is for the members alone, in NCCL's own layout; with relays for all GPUs.
TEST_F(Shapes, ProgramsOfGroupsAreCheckedAndExecuted) {
  for (const std::string collective : {"allgather", "allreduce", "alltoall"}) {
    succeed(solve_mesh("--collective " + collective + " --size 6KB --chunks 3 --group 0,1,2 --relay none"));
    succeed(split("export out --format msccl-xml --output alone.xml"));
    const std::string alone = read_file(at("alone.xml"));
    EXPECT_TRUE(contains(alone, "ngpus=\"3\"") && contains(alone, "coll=\"" + collective + "\"")) << alone;
    succeed({"check-xml", "alone.xml"});
    succeed(split("execute alone.xml --bytes 12KB"), 2);
    succeed(split("execute out --bytes 12KB"), 2);
  }
  succeed(solve_mesh("--collective alltoall --size 6KB --group 0,5"));
  succeed(split("export out --format msccl-xml --output relayed.xml"));
  const std::string relayed = read_file(at("relayed.xml"));
  EXPECT_TRUE(contains(relayed, "ngpus=\"6\"") && contains(relayed, "coll=\"custom\"")) << relayed;
  succeed({"check-xml", "relayed.xml"});
  succeed(split("execute relayed.xml --bytes 12KB"), 2);
  EXPECT_TRUE(contains(succeed(split("execute out --bytes 12KB"), 2), "every byte of the outputs is right"));
  const Outcome in_place =
      run(split("export out --format msccl-xml --placement in-place --output in.xml"), 1, at(""));
  EXPECT_EQ(in_place.exit_code, 64) << in_place.err;
  EXPECT_TRUE(contains(in_place.err, "over GPUs 0,5") && contains(in_place.err, "--relay none"))
      << in_place.err;
}

TEST_F(Shapes, CountsComeAsTextOrJson) {
  write_file(at("c.csv"), "# from each to each\n0, 2000, 0\n1000, 0, 3000\n\n0, 500, 700\n");
  write_file(at("c.json"), "[[0, 2000, 0], [1000, 0, 3000], [0, 500, 700]]");
  std::set<std::string> problems;
  for (const char* file : {"c.csv", "c.json"}) {
    succeed(solve_mesh(std::string("--collective alltoall --group 0,2,4 --counts ") + file));
    problems.insert(read_file(at("out/problem.json")));
  }
  EXPECT_EQ(problems.size(), 1U);
  EXPECT_EQ(read_json(at("out/report.json"))["size_bytes"], 4000);
  EXPECT_TRUE(contains(succeed({"verify", "out"}), "alltoall of 4 KB over GPUs 0,2,4 by counts"));
  succeed(split("replay out --size 40KB --output r.json"));
  EXPECT_EQ(read_json(at("r.json"))["counts"][1], 20000);
  succeed({"verify", "r.json"});
  succeed(split("execute out --bytes 40KB"), 2);
  write_file(at("c.txt"), "3000\n0\n1000\n500\n0\n0\n");
  for (const std::string collective : {"allgather", "reduce_scatter", "gather", "scatter"}) {
    succeed(solve_mesh("--chunks 2 --counts c.txt --collective " + collective), 2);
    EXPECT_EQ(read_json(at("out/report.json"))["size_bytes"], 4500);
    succeed({"verify", "out"});
    succeed(split("execute out --bytes 45KB"), 2);
  }
}

TEST_F(Shapes, PartsOfRoundCountsAreWrittenAsACustomProgram) {
  write_file(at("c.txt"), "4096 8192 4096 0 0 0");
  succeed(solve_mesh("--collective allgather --counts c.txt --chunks 1 --engine list"));
  succeed(split("export out --format msccl-xml --output v.xml"));
  EXPECT_TRUE(contains(read_file(at("v.xml")), "coll=\"custom\""));
  succeed({"check-xml", "v.xml"});
  succeed(split("execute v.xml --bytes 16KB"), 2);
}

TEST_F(Shapes, ACustomDemandStaysWithinWhatItNames) {
  write_file(at("d.json"), R"({"format": "rondo-demand", "version": 1, "chunks": [
      {"id": 0, "bytes": 6000, "sources": [0], "destinations": [1, 2]}]})");
  const std::string custom =
      "solve --topology mesh:dims=2x3 --gap 100% --force --output out --demand d.json ";
  succeed(split(custom + "--relay none"));
  EXPECT_EQ(read_json(at("out/problem.json"))["group"].dump(), "[0,1,2]");
  EXPECT_TRUE(contains(succeed({"verify", "out"}), "custom of 6 KB over GPUs 0-2 without relays"));
  succeed(split("export out --format msccl-xml --output d.xml"));
  succeed({"check-xml", "d.xml"});
  succeed(split(custom + "--group 0-2,4"));
  EXPECT_EQ(read_json(at("out/problem.json"))["group"].dump(), "[0,1,2,4]");
}

TEST_F(Shapes, RoundsAndResumeWorkInAGroup) {
  succeed(split("solve --topology mesh:dims=2x3 --collective allgather --size 6KB --group 0-2 --relay none "
                "--engine "
                "rounds --chunks 1 --force --output out"),
          2);
  succeed({"verify", "out"});
  succeed({"info", "out"});
}

}  // namespace
}  // namespace rondo::test::test_shape_commands
