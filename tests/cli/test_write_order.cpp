#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "program.hpp"

/// What a power cut leaves, by the order of system calls: a name is given only to content that is on the
/// disk, and the name itself is there before anything builds on it.
namespace rondo::test {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

using WriteOrder = ProgramTest;

TEST_F(WriteOrder, EveryFileOfARunIsOnTheDiskBeforeItsNameIs) {
  for (const int ranks : {1, 2}) {
    const fs::path record = at("record-" + std::to_string(ranks));
    setenv("LD_PRELOAD", RONDO_RECORD_WRITES, 1);
    setenv("RONDO_RECORD", record.c_str(), 1);
    const std::string output = at("out-" + std::to_string(ranks)).string();
    succeed(
        split(
            "solve --topology ring:gpus=4,bandwidth_GBps=10,latency_us=1 --collective allgather --size 30KB "
            "--engine rounds --chunks 2 --round-epochs 1 --output " +
            output),
        ranks);
    unsetenv("LD_PRELOAD");
    unsetenv("RONDO_RECORD");
    const std::vector<std::string> lines = lines_of(read_file(record));
    int renamed = 0;
    for (auto line = lines.begin(); line != lines.end(); ++line) {
      if (!line->starts_with("rename ") || line->find(output) == std::string::npos) continue;
      const std::vector<std::string> words = split(*line);
      ASSERT_EQ(words.size(), 3U) << *line;
      const auto last_write = std::find(std::make_reverse_iterator(line), lines.rend(), "write " + words[1]);
      ASSERT_NE(last_write, lines.rend()) << *line;
      EXPECT_NE(std::find(last_write.base(), line, "fsync " + words[1]), line) << words[2];
      const auto next_rename =
          std::find_if(line + 1, lines.end(), [](const std::string& l) { return l.starts_with("rename "); });
      const std::string folder = fs::path(words[2]).parent_path().string();
      EXPECT_NE(std::find(line + 1, next_rename, "fsync " + folder), next_rename) << words[2];
      ++renamed;
    }
    EXPECT_GE(renamed, 5) << "problem.json, two rounds, schedule.h5 and report.json";
  }
}

}  // namespace
}  // namespace rondo::test
