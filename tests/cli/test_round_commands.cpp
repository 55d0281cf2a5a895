#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "program.hpp"

/// Runs in rounds: the files that they leave, and going on after a run that was cut off.
namespace rondo::test::test_round_commands {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using Words = std::vector<std::string>;

/// Rounds of one epoch, so that there are several.
Words solve_in_rounds(const std::string& more = "") {
  return split(
      "solve --topology ring:gpus=4,bandwidth_GBps=10,latency_us=1 --collective allgather --size 30KB "
      "--engine rounds --start list --chunks 2 --round-epochs 1 --output out " +
      more);
}

class RoundCommands : public ProgramTest {
 protected:
  std::string digest() const {
    return Json::parse(read_file(at("out/report.json")))["schedule_digest"].get<std::string>();
  }
  std::vector<fs::path> round_files() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(at("out/rounds"))) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    return files;
  }
  void remove_results() const {
    fs::remove(at("out/report.json"));
    fs::remove(at("out/schedule.h5"));
  }
};

TEST_F(RoundCommands, SolveWritesAFileARound) {
  succeed(solve_in_rounds());
  const std::vector<fs::path> files = round_files();
  ASSERT_GT(files.size(), 1U);
  EXPECT_EQ(files[0].filename(), "round-00000.h5");
  EXPECT_EQ(files[1].filename(), "round-00001.h5");
  succeed({"verify", "out"});
}

TEST_F(RoundCommands, ReassembleMakesTheSameSchedule) {
  succeed(solve_in_rounds());
  succeed(split("reassemble out --output again.h5"));
  EXPECT_TRUE(read_file(at("again.h5")) == read_file(at("out/schedule.h5")));
  const std::string schedule = read_file(at("out/schedule.h5"));
  fs::remove(at("out/schedule.h5"));
  succeed({"reassemble", "out"});
  EXPECT_TRUE(read_file(at("out/schedule.h5")) == schedule);
}

// Rounds of sums are those of the transposed problem.
TEST_F(RoundCommands, ReassembleMakesTheSameSums) {
  succeed(split(
      "solve --topology ring:gpus=4 --collective reduce_scatter --size 1MB --engine rounds --output out"));
  succeed(split("reassemble out --output again.h5"));
  EXPECT_TRUE(read_file(at("again.h5")) == read_file(at("out/schedule.h5")));
}

TEST_F(RoundCommands, ReassembleNeedsAllRounds) {
  succeed(solve_in_rounds());
  const std::string last = round_files().back().filename();
  const std::string content = read_file(at("out/rounds/" + last));
  write_file(at("out/rounds/" + last), content.substr(0, content.size() / 2));
  const Outcome damaged = rondo(split("reassemble out --output again.h5"));
  EXPECT_EQ(damaged.exit_code, 65);
  EXPECT_NE(damaged.err.find(last), std::string::npos) << damaged.err;
  fs::remove(at("out/rounds/round-00000.h5"));
  EXPECT_EQ(rondo(split("reassemble out --output again.h5")).exit_code, 65);
  EXPECT_FALSE(fs::exists(at("again.h5")));
}

TEST_F(RoundCommands, ResumeGoesOnAfterTheLastWholeRound) {
  for (const std::string more : {"", "--decompose pop --parts 3 --force"}) {
    succeed(solve_in_rounds(more));
    const std::string before = digest();
    const std::vector<fs::path> files = round_files();
    for (const int ranks : {1, 2}) {
      remove_results();
      fs::remove(files.back());
      succeed({"resume", "out"}, ranks);
      EXPECT_EQ(digest(), before) << ranks << " ranks";
      EXPECT_EQ(round_files(), files);
    }
    succeed({"verify", "out"});
  }
}

TEST_F(RoundCommands, ResumeSolvesWhatStandsBehindADamagedRoundAgain) {
  succeed(solve_in_rounds());
  const std::string before = digest();
  remove_results();
  const fs::path damaged = at("out/rounds/round-00001.h5");
  std::string bytes = read_file(damaged);
  bytes[bytes.size() / 2] ^= 1;
  write_file(damaged, bytes);
  const Outcome outcome = rondo({"resume", "out"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_NE(outcome.err.find("rounds from 1 on are solved again"), std::string::npos) << outcome.err;
  EXPECT_EQ(digest(), before);
}

TEST_F(RoundCommands, ResumeOfASolvedRunAnswers) {
  succeed(solve_in_rounds());
  EXPECT_NE(succeed({"resume", "out"}).find("already solved"), std::string::npos);
}

TEST_F(RoundCommands, ResumeNeedsAProblem) {
  fs::create_directory(at("empty"));
  for (const char* folder : {"empty", "nowhere"}) {
    for (const int ranks : {1, 2}) {
      const Outcome outcome = rondo({"resume", folder}, ranks);
      EXPECT_EQ(outcome.exit_code, 66) << outcome.err;
      EXPECT_NE(outcome.err.find(std::string(folder) + "/problem.json"), std::string::npos) << outcome.err;
    }
  }
  EXPECT_TRUE(fs::is_empty(at("empty")));
  EXPECT_FALSE(fs::exists(at("nowhere")));
}

TEST_F(RoundCommands, MorePartsThanTheFabricAllowsAreRefused) {
  const Outcome outcome =
      rondo(split("solve --topology ndv2-2 --collective allgather --size 1MB --chunks 1 --engine rounds "
                  "--start list --decompose ncflow --parts 99 --output out"));
  EXPECT_EQ(outcome.exit_code, 64) << outcome.err;
  EXPECT_NE(outcome.err.find("--parts is 99"), std::string::npos) << outcome.err;
  EXPECT_FALSE(fs::exists(at("out/schedule.h5")));
}

}  // namespace
}  // namespace rondo::test::test_round_commands
