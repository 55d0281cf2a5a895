#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <tuple>

#include "program.hpp"
#include "rondo/io/json_files.hpp"

/// Runs that are stopped, and the commands that continue them.
namespace rondo::test::test_survival {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

/// A search of a second and more, each batch of which leaves a state.
Words search(const std::string& more = "") {
  return split(
      "solve --topology rails:boxes=2,rails=2 --collective alltoall --size 1KB --output out "
      "--checkpoint-every 0 " +
      more);
}

/// Where a program ends: when it has kept this file, the one of this number or a later one.
struct Stop {
  std::string file = "search";  ///< name without its number
  int number = 1;
  int signal_number = SIGKILL;
  long bytes = 0;  ///< smaller files are passed over
};

class Survival : public ProgramTest {
 protected:
  /// Runs a command to the stop, on several ranks under mpirun.
  Outcome run_until(const Stop& stop, const Words& command, int ranks = 1) const {
    return started(stop, command, ranks)->wait();
  }
  std::unique_ptr<Process> started(const Stop& stop, const Words& command, int ranks = 1) const {
    std::ostringstream where;
    where << stop.file << ' ' << stop.number << ' ' << stop.bytes << ' ' << stop.signal_number << ' '
          << (ranks == 1 ? "self" : "mpirun");
    setenv("LD_PRELOAD", RONDO_RECORD_WRITES, 1);
    setenv("RONDO_STOP_AT", where.str().c_str(), 1);
    auto process = std::make_unique<Process>(command, ranks, folder_.path());
    unsetenv("LD_PRELOAD");
    unsetenv("RONDO_STOP_AT");
    return process;
  }
  void leave_unfinished(int signal_number, int exit_code, int ranks = 1) const {
    const Outcome outcome = run_until({.signal_number = signal_number}, search(), ranks);
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
    ASSERT_TRUE(fs::exists(at("out/states"))) << "it ended before the signal";
  }
  /// Kills the run when it has kept this state, and resumes it on two ranks.
  void expect_the_same_after_a_kill(const std::string& command, const std::string& state, int number) const {
    succeed(split(command));
    const std::string undisturbed = digest();
    fs::remove_all(at("out"));

    run_until({.file = state, .number = number}, split(command));
    ASSERT_TRUE(fs::exists(at("out/states"))) << "it ended before the signal";
    succeed({"resume", "out"}, 2);
    EXPECT_EQ(digest(), undisturbed);
  }
  Json report() const { return Json::parse(read_file(at("out/report.json"))); }
  std::string digest() const { return report()["schedule_digest"].get<std::string>(); }
};

TEST_F(Survival, AStoppedSearchEndsWithTheScheduleOfAnUndisturbedOne) {
  succeed(search());
  const std::string undisturbed = digest();
  fs::remove_all(at("out"));

  leave_unfinished(SIGUSR1, 75, 2);
  EXPECT_TRUE(contains(succeed({"info", "out"}), "state search"));
  const Outcome stopped = rondo(search("--resume --max-hours 1e-6"));
  EXPECT_EQ(stopped.exit_code, 75) << stopped.err;
  EXPECT_TRUE(contains(stopped.err, "rondo resume out continues")) << stopped.err;
  succeed({"resume", "out"});
  EXPECT_EQ(digest(), undisturbed);
  EXPECT_EQ(report()["resumed_from"], Json::array({"search"}));
  EXPECT_FALSE(fs::exists(at("out/states")));
}

TEST_F(Survival, AKilledImprovementEndsWithTheScheduleOfAnUndisturbedOne) {
  expect_the_same_after_a_kill(
      "solve --topology rails:boxes=2,gpus=4 --degrade 0.1:0.5 --collective allgather --size 1GB "
      "--engine list --chunks 32 --improve-work 1e6 --output out --checkpoint-every 0.02",
      "improvement", 2);
}

TEST_F(Survival, AKilledRunFromAKeptScheduleEndsWithTheScheduleOfAnUndisturbedOne) {
  succeed(split("solve --topology torus:dims=3x3 --collective allgather --size 9KB --output kept"));
  expect_the_same_after_a_kill(
      "solve --topology torus:dims=3x3 --degrade 0.2:0.5 --collective allgather --size 9KB --engine list "
      "--from kept --improve-work 4e5 --output out --checkpoint-every 0",
      "improvement", 2);
  EXPECT_TRUE(contains(succeed({"info", "out"}), "start.h5"));
  // Its own schedule is known by its content: the folder holds another problem.
  succeed(
      split("solve --topology torus:dims=3x3 --collective allgather --size 9KB --engine list --output kept "
            "--force"));
  const Outcome other = rondo(split(
      "solve --topology torus:dims=3x3 --degrade 0.2:0.5 --collective allgather --size 9KB --engine list "
      "--from kept --improve-work 4e5 --output out"));
  EXPECT_EQ(other.exit_code, 65);
  EXPECT_TRUE(contains(other.err, "start_digest")) << other.err;
}

TEST_F(Survival, AKilledColumnGenerationEndsWithTheScheduleOfAnUndisturbedOne) {
  expect_the_same_after_a_kill(
      "solve --topology mesh:dims=8x8 --degrade 0.2:0.3..0.9 --collective alltoall --size 36MB "
      "--engine flow --gap 30% --chunks 1 --lp-solver columns --output out --checkpoint-every 0",
      "columns", 0);
}

// AllReduce is several searches, one after another, whose states have names of their own.
TEST_F(Survival, AStoppedAllReduceEndsWithTheScheduleOfAnUndisturbedOne) {
  const auto solve_of = [](const std::string& problem) {
    return split("solve --topology " + problem +
                 " --collective allreduce --improve-work 1e4 --output out --checkpoint-every 0");
  };
  const Words large = solve_of("torus:dims=3x3 --size 256KB");
  const Words small = solve_of("mesh:dims=3x5 --size 64KB");
  for (const auto& [solve, state] : {std::pair(large, "spreading-search"), std::pair(large, "search"),
                                     std::pair(small, "groups-1-1-one-spreading-search"),
                                     std::pair(small, "groups-1-1-any-spreading-search")}) {
    SCOPED_TRACE(state);
    fs::remove_all(at("out"));
    succeed(solve);
    const std::string undisturbed = digest();
    fs::remove_all(at("out"));
    EXPECT_EQ(run_until({.file = state, .signal_number = SIGTERM}, solve).exit_code, 75);
    ASSERT_TRUE(fs::exists(at("out/states"))) << "it ended before the signal";
    succeed({"resume", "out"}, 2);
    EXPECT_EQ(digest(), undisturbed);
    EXPECT_FALSE(fs::exists(at("out/states")));
  }
}

// Tenants are solved one after another, then as one demand: each search has states of its own.
TEST_F(Survival, AKilledSharingOfTenantsEndsWithTheScheduleOfAnUndisturbedOne) {
  expect_the_same_after_a_kill(
      "solve --topology ring:gpus=4 --tenant a:collective=allgather,size=4KB --tenant "
      "b:collective=broadcast,size=4KB,priority=4 --objective weighted --improve-work 1e3 --output out "
      "--checkpoint-every 0",
      "joint-search", 1);
}

TEST_F(Survival, AKilledSearchForLateSumsEndsWithTheScheduleOfAnUndisturbedOne) {
  expect_the_same_after_a_kill(
      "solve --topology torus:dims=3x3 --collective reduce_scatter --size 64KB --ready 1:2 --improve-work "
      "1e4 "
      "--output out --checkpoint-every 0",
      "auto-search", 1);
}

TEST_F(Survival, AKilledSearchOverScenariosEndsWithTheScheduleOfAnUndisturbedOne) {
  write_file(at("s.json"), R"({"format": "rondo-scenarios", "version": 1, "scenarios": [
      {"name": "slow", "scale-bandwidth": "0:1:0.2"}]})");
  expect_the_same_after_a_kill(
      "solve --topology ring:gpus=4 --collective allgather --size 4KB --improve-work 1e3 --scenarios s.json "
      "--output out --checkpoint-every 0",
      "scenario-1-search", 1);
}

TEST_F(Survival, TwoRoundsReplaceTheStatesOfTheirPlan) {
  const std::string solve =
      "solve --topology star:chassis=2,gpus=4 --collective allgather --size 100MB --chunks 4 --engine rounds "
      "--start list --decompose ncflow --round-epochs 4 --output out --checkpoint-every 0";
  succeed(split(solve));
  const std::string undisturbed = digest();
  fs::remove_all(at("out"));

  setenv("RONDO_RECORD", at("record").c_str(), 1);
  run_until({.file = "round", .number = 2}, split(solve));
  unsetenv("RONDO_RECORD");
  ASSERT_FALSE(fs::exists(at("out/report.json"))) << "it ended before the signal";
  EXPECT_TRUE(contains(read_file(at("record")), "states/plan-search-00000.state"));
  // Killed as the second round got its name, before the states behind it were removed.
  fs::remove_all(at("out/states"));
  fs::create_directory(at("out/states"));
  write_file(at("out/states/plan-search-00007.state"), "older");
  const Outcome resumed = rondo({"resume", "out"}, 2);
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_FALSE(contains(resumed.err, "plan-search")) << resumed.err;
  EXPECT_EQ(digest(), undisturbed);
}

TEST_F(Survival, AnUnfinishedRunIsNeitherThrownAwayNorMixedUp) {
  leave_unfinished(SIGTERM, 75);
  const auto expect_refused = [&](const Words& arguments, const std::string& reason) {
    const Outcome outcome = rondo(arguments);
    EXPECT_EQ(outcome.exit_code, 65) << outcome.err;
    EXPECT_TRUE(contains(outcome.err, reason)) << outcome.err;
  };
  expect_refused(search(), "--resume");
  expect_refused(search("--resume --seed 7"), "options.seed: 0 there, 7 asked");
  EXPECT_EQ(rondo(search("--resume --force")).exit_code, 64);

  const std::string problem = read_file(at("out/problem.json"));
  Json json = parse_sealed_json(problem, "problem.json");
  json["producer"] = "rondo 0.0.1";
  write_file(at("out/problem.json"), sealed_text(json));
  expect_refused({"resume", "out"}, "producer: \"rondo 0.0.1\" there");
  expect_refused(search("--resume"), "producer: \"rondo 0.0.1\" there");

  std::string damaged = problem;
  damaged[damaged.size() / 2] ^= 1;
  write_file(at("out/problem.json"), damaged);
  expect_refused({"resume", "out"}, "problem.json");
  EXPECT_TRUE(contains(succeed({"info", "out"}), "damaged: "));
}

TEST_F(Survival, AKilledRunLeavesALockThatIsTakenOverAndAStateThatIsPassedOver) {
  leave_unfinished(SIGKILL, -1);
  EXPECT_TRUE(contains(succeed({"info", "out"}), "dead; the next run takes it over"));
  std::vector<fs::path> states;
  for (const auto& entry : fs::directory_iterator(at("out/states"))) states.push_back(entry.path());
  const fs::path newest = *std::max_element(states.begin(), states.end());
  std::string bytes = read_file(newest);
  bytes.back() ^= 1;
  write_file(newest, bytes);
  const Outcome outcome = rondo({"resume", "out"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_TRUE(contains(outcome.err, newest.filename().string())) << outcome.err;
  succeed({"verify", "out"});
}

TEST_F(Survival, AFirstOrderSolveGoesOnFromItsNewestIterateOnOtherRanks) {
  const Words solve = split(
      "solve --topology ndv2-2 --collective alltoall --size 1MB --engine lp --lp-solver pdhg --symmetry off "
      "--lp-tolerance 1e-3 --chunks 1 --epoch-multiplier 12 --output out --checkpoint-every 0");
  constexpr long kLargeState = 100'000;  // of the flow over time, not of the bound's
  const auto finish_us = [&] {
    return Json::parse(read_file(at("out/report.json")))["finish_us"].get<double>();
  };
  succeed(solve);
  const double undisturbed_us = finish_us();
  for (const auto& [signal_number, ranks, exit_code] :
       {std::tuple{SIGUSR1, 2, 75}, std::tuple{SIGKILL, 1, -1}}) {
    fs::remove_all(at("out"));
    const Outcome outcome = run_until(
        {.file = "pdhg", .number = 0, .signal_number = signal_number, .bytes = kLargeState}, solve, ranks);
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
    EXPECT_TRUE(contains(succeed({"info", "out"}), "state pdhg-"));
    succeed({"resume", "out"}, 3 - ranks);
    EXPECT_NEAR(finish_us(), undisturbed_us, 1e-4 * undisturbed_us);
  }
}

TEST_F(Survival, NothingIsKeptWhereThatIsAskedFor) {
  const std::string ring =
      "solve --topology ring:gpus=4,bandwidth_GBps=10,latency_us=1 --collective allgather --size 30KB "
      "--engine "
      "rounds --start list --chunks 2 --round-epochs 1 --output ";
  succeed(split(ring + "kept"));
  succeed(split(ring + "out --checkpoint-every never"));
  EXPECT_TRUE(fs::exists(at("kept/rounds")));
  EXPECT_FALSE(fs::exists(at("out/rounds")));
  EXPECT_EQ(digest(), Json::parse(read_file(at("kept/report.json")))["schedule_digest"].get<std::string>());
  EXPECT_GT(Json::parse(read_file(at("kept/report.json")))["durability"]["seconds"].get<double>(), 0);
  EXPECT_EQ(rondo(split(ring + "out --checkpoint-every often")).exit_code, 64);
}

TEST_F(Survival, ASecondSignalEndsTheProcessAtOnce) {
  const auto process = started({.signal_number = SIGSTOP}, search());
  process->wait_until_held();  // so that the two signals come before anything reads the flag
  process->signal(SIGUSR1);
  process->signal(SIGTERM);
  process->signal(SIGCONT);
  EXPECT_EQ(process->wait().exit_code, 75);
  EXPECT_TRUE(fs::exists(at("out/lock")));  // nothing was tidied up
}

}  // namespace
}  // namespace rondo::test::test_survival
