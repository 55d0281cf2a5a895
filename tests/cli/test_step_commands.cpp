#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "program.hpp"
#include "rup_checker.hpp"

/// Engine steps and rondo pareto, as a user runs them.
namespace rondo::test::test_step_commands {
namespace {

using Json = nlohmann::json;
using Steps = ProgramTest;

std::vector<std::string> solve(const std::string& more) {
  return split("solve --force --output out --engine steps --size 1MB " + more);
}

TEST_F(Steps, AScheduleOrTheProofThatThereIsNone) {
  const std::string ring = "--topology ring:gpus=4 --collective allgather ";
  std::set<std::string> digests;
  for (const int ranks : {1, 2, 4}) {
    succeed(solve(ring + "--chunks 2 --steps 2 --rounds 3"), ranks);
    const Json report = Json::parse(read_file(at("out/report.json")));
    digests.insert(report["schedule_digest"]);
    EXPECT_LE(report["finish_us"].get<double>(), report["metrics"]["step_cost_us"].get<double>());
  }
  EXPECT_EQ(digests.size(), 1U);
  succeed({"verify", "out"});
  // Three GPUs' data over two links take three halves of a round a chunk.
  const Outcome none = rondo(solve(ring + "--chunks 3 --steps 2 --rounds 4 --proof none.drat"), 2);
  EXPECT_EQ(none.exit_code, 69) << none.err;
  EXPECT_TRUE(contains(none.err, "there is none")) << none.err;
  EXPECT_EQ(RupChecker::check(at("none.drat.cnf"), at("none.drat")), "");
  const Outcome halves =
      rondo(solve("--topology ring:gpus=4 --collective allreduce --chunks 12 --steps 4 --rounds 8"));
  EXPECT_EQ(halves.exit_code, 69) << halves.err;
  EXPECT_TRUE(contains(halves.err, "in halves") && contains(halves.err, "there is none")) << halves.err;
  succeed(solve("--topology ring:gpus=4 --collective allreduce --chunks 8 --steps 4 --rounds 6"));
  EXPECT_EQ(Json::parse(read_file(at("out/report.json")))["metrics"]["steps"], 4);
  succeed({"verify", "out"});
}

TEST_F(Steps, QuestionsThatAreNotWholeOrContradictThemselvesAreRefused) {
  const std::string ring = "--topology ring:gpus=4 --collective ";
  const std::vector<std::pair<std::string, std::string>> bad{
      {ring + "allgather --steps 2 --rounds 3", "--chunks is not given"},
      {ring + "allgather --chunks 1 --rounds 3", "--steps is not given"},
      {ring + "allgather --chunks 1 --steps 2", "--rounds is not given"},
      {ring + "allgather --chunks 1 --steps 3 --rounds 2", "--rounds is 2 and --steps 3"},
      {ring + "allreduce --chunks 4 --steps 3 --rounds 4", "even numbers"},
      {ring + "allreduce --chunks 6 --steps 4 --rounds 4", "a multiple of 4"}};
  for (const auto& [arguments, said] : bad) {
    const Outcome outcome = rondo(solve(arguments));
    EXPECT_EQ(outcome.exit_code, 64) << arguments << ": " << outcome.err;
    EXPECT_TRUE(contains(outcome.err, said)) << arguments << ": " << outcome.err;
  }
  for (const char* option : {"--steps 2", "--rounds 3", "--max-conflicts 5", "--proof p"}) {
    const Outcome outcome = rondo(split(std::string("solve --output out --topology ring:gpus=4 --collective "
                                                    "allgather --size 1MB --engine list ") +
                                        option));
    EXPECT_EQ(outcome.exit_code, 64) << option;
    EXPECT_TRUE(contains(outcome.err, "it is for --engine steps")) << outcome.err;
  }
  const Outcome star =
      rondo(solve("--topology star:chassis=2,gpus=2 --collective allgather --chunks 1 --steps 2 --rounds 2"));
  EXPECT_EQ(star.exit_code, 69) << star.err;
  EXPECT_TRUE(contains(star.err, "a switch (node")) << star.err;
}

std::vector<std::string> pareto(const std::string& collective, const std::string& folder) {
  return split("pareto --topology dgx1 --size 1MB --collective " + collective + " --output " + folder);
}

std::vector<std::string> points_of(const Json& frontier) {
  std::vector<std::string> points;
  for (const Json& point : frontier["points"])
    points.push_back(point["chunks"].dump() + "," + point["steps"].dump() + "," + point["rounds"].dump());
  return points;
}

TEST_F(Steps, AFrontierIsTheSameOnAnyNumberOfRanks) {
  std::set<std::string> frontiers;
  for (const int ranks : {1, 2, 4}) {
    const std::string folder = "ranks" + std::to_string(ranks);
    succeed(split("pareto --topology ring:gpus=4 --size 1MB --collective allreduce --output " + folder),
            ranks);
    frontiers.insert(read_file(at(folder + "/frontier.json")));
  }
  EXPECT_EQ(frontiers.size(), 1U);
  // Twice the AllGather of Figure 2 of the paper, which the bandwidth allows nothing better than.
  EXPECT_EQ(points_of(Json::parse(*frontiers.begin())), (std::vector<std::string>{"8,4,6"}));
}

// SCCL, section 2: 3 alpha + 7 / 6 L beta and 2 alpha + 3 / 2 L beta, and nothing between.
TEST_F(Steps, TheFrontierOfADgx1IsThatOfThePaper) {
  succeed(pareto("allgather", "f1"));
  const Json first = Json::parse(read_file(at("f1/frontier.json")));
  EXPECT_EQ(points_of(first), (std::vector<std::string>{"2,2,3", "6,3,7"}));
  EXPECT_TRUE(first["meets_bound"]);
  for (const Json& point : first["points"]) {
    EXPECT_TRUE(point["is_least"]);
    EXPECT_EQ(point["refuted"].empty(), point["steps"] == 3);  // there the bound is met
    for (const Json& file : point["refuted"]) {
      const std::filesystem::path proof = at("f1") / file.get<std::string>();
      EXPECT_EQ(RupChecker::check(proof.string() + ".cnf", proof.string()), "") << proof;
    }
    succeed({"verify", "f1/" + point["schedule"].get<std::string>()});
    succeed({"check-xml", "f1/" + point["program"].get<std::string>()});
  }
  // 0.7 us more for a third of a chunk less: 0.7 / (1/3 / 8 / 25000) bytes.
  const double crossing = first["points"][0]["to_bytes"];
  EXPECT_NEAR(crossing, 0.7 / (1.0 / 3 / 8 / 25000), 1e-3);
  EXPECT_EQ(first["points"][1]["from_bytes"], crossing);
  EXPECT_TRUE(contains(read_file(at("f1/2-2-3.xml")), "maxBytes=\"419999\""));
  EXPECT_TRUE(contains(read_file(at("f1/6-3-7.xml")), "minBytes=\"420000\""));
  // Another problem is refused there.
  const Outcome other = rondo(pareto("alltoall", "f1"));
  EXPECT_EQ(other.exit_code, 65) << other.err;
  EXPECT_TRUE(contains(other.err, "of another frontier")) << other.err;

  // A walk that is stopped goes on, on another number of ranks, to the same frontier.
  const auto known = [&] {
    return std::filesystem::exists(at("stopped/trials.json")) ? read_file(at("stopped/trials.json")) : "";
  };
  int exit_code = 0;
  for (int attempt = 0; attempt < 5 && exit_code == 0; ++attempt) {  // 0: it was faster than the signal
    std::filesystem::remove_all(at("stopped"));
    Process process(pareto("allgather", "stopped"), 1, at(""));
    while (!contains(known(), "schedule")) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    process.signal(SIGTERM);
    exit_code = process.wait().exit_code;
  }
  ASSERT_EQ(exit_code, 75);
  EXPECT_FALSE(std::filesystem::exists(at("stopped/frontier.json")));
  succeed(pareto("allgather", "stopped"), 2);
  EXPECT_EQ(read_file(at("stopped/frontier.json")), read_file(at("f1/frontier.json")));
}

}  // namespace
}  // namespace rondo::test::test_step_commands
