#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "program.hpp"

/// What a power cut leaves, by the order of system calls: a name is given only to content that is on the
/// disk, and the name itself is there before anything builds on it.
namespace rondo::test::test_write_order {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// Whether `line` is between the two.
bool is_between(std::vector<std::string>::const_iterator begin, std::vector<std::string>::const_iterator end,
                const std::string& line) {
  return std::find(begin, end, line) != end;
}

class WriteOrder : public ProgramTest {
 protected:
  /// Solves, and returns what was renamed to where in `output` after the checks of each name.
  std::vector<fs::path> renamed_by(const std::string& command, const std::string& output, int ranks) const {
    const fs::path record = at("record-" + std::to_string(ranks));
    setenv("LD_PRELOAD", RONDO_RECORD_WRITES, 1);
    setenv("RONDO_RECORD", record.c_str(), 1);
    succeed(split(command + " --output " + output), ranks);
    unsetenv("LD_PRELOAD");
    unsetenv("RONDO_RECORD");
    const std::vector<std::string> lines = lines_of(read_file(record));
    fs::remove(record);
    std::vector<fs::path> renamed;
    for (auto line = lines.begin(); line != lines.end(); ++line) {
      if (line->find(output) == std::string::npos) continue;
      const auto next_rename =
          std::find_if(line + 1, lines.end(), [](const std::string& l) { return l.starts_with("rename "); });
      const std::vector<std::string> words = split(*line);
      const fs::path named = words.back();
      if (line->starts_with("mkdir ") || line->starts_with("rename ")) {
        EXPECT_TRUE(is_between(line + 1, next_rename, "fsync " + named.parent_path().string())) << *line;
      }
      if (!line->starts_with("rename ")) continue;
      const auto last_write = std::find(std::make_reverse_iterator(line), lines.rend(), "write " + words[1]);
      EXPECT_TRUE(last_write != lines.rend() && is_between(last_write.base(), line, "fsync " + words[1]))
          << *line;
      renamed.push_back(named);
    }
    return renamed;
  }
};

TEST_F(WriteOrder, EveryFileOfARunIsOnTheDiskBeforeItsNameIs) {
  const std::string ring =
      "solve --topology ring:gpus=4,bandwidth_GBps=10,latency_us=1 --collective allgather --size 30KB "
      "--chunks "
      "2 --checkpoint-every 0 ";
  for (const int ranks : {1, 2}) {
    const std::string output = at("out-" + std::to_string(ranks)).string();
    const auto renamed = renamed_by(ring + "--engine rounds --start list --round-epochs 1", output, ranks);
    EXPECT_GE(renamed.size(), 6U) << "problem.json, a state, two rounds, schedule.h5 and report.json";
    EXPECT_EQ(renamed.front().filename(), "problem.json");
    EXPECT_EQ(renamed.back().filename(), "report.json");
    EXPECT_TRUE(std::any_of(renamed.begin(), renamed.end(),
                            [](const fs::path& path) { return path.extension() == ".state"; }));
  }
}

}  // namespace
}  // namespace rondo::test::test_write_order
