#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "rondo/cli/command_line.hpp"
#include "rondo/core/error.hpp"
#include "rondo/io/files.hpp"
#include "rondo/io/json_files.hpp"
#include "rondo/parallel/communicator.hpp"

/// `rondo verify` judges every schedule of io/conformance as its verdict says.
namespace rondo::conformance_verify {
namespace {

namespace fs = std::filesystem;

const fs::path kFolder = RONDO_SOURCE_DIR "/io/conformance";

const Json& verdicts() {
  static const Json all = parse_json(read_text_file(kFolder / "verdicts.json"), "verdicts.json");
  return all;
}

std::vector<std::string> judged_files() {
  std::vector<std::string> names;
  for (const auto& [name, verdict] : verdicts().items()) names.push_back(name);
  return names;
}

struct Judgement {
  int exit_code = 0;
  std::string out;
  std::string err;
};

Judgement verify(const fs::path& path) {
  const auto alone = make_local_communicator();
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Judgement judgement;
  judgement.exit_code = run_command_line({"verify", path}, *alone);
  judgement.out = testing::internal::GetCapturedStdout();
  judgement.err = testing::internal::GetCapturedStderr();
  return judgement;
}

class Conformance : public testing::TestWithParam<std::string> {};

TEST_P(Conformance, IsJudgedAsTheVerdictSays) {
  const fs::path path = kFolder / "cases" / GetParam();
  const Json& verdict = verdicts()[GetParam()];
  const Judgement judgement = verify(path);
  if (!verdict["valid"].get<bool>()) {
    EXPECT_EQ(judgement.exit_code, static_cast<int>(ExitCode::bad_data))
        << "it breaks rule " << verdict["rule"] << "\n"
        << judgement.out << judgement.err;
    return;
  }
  ASSERT_EQ(judgement.exit_code, 0) << judgement.err;
  // Valid: what the replay found is what the file claims.
  const double finish_us = verdict["finish_us"].get<double>();
  const double claimed_us = parse_json(read_text_file(path), path)["finish_us"].get<double>();
  EXPECT_NEAR(claimed_us, finish_us, 1e-6 + 1e-9 * finish_us);
}

std::string case_name(const testing::TestParamInfo<std::string>& test) {
  std::string name = fs::path(test.param).stem();
  std::ranges::replace_if(
      name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Cases, Conformance, testing::ValuesIn(judged_files()), case_name);

TEST(ConformanceCases, EachHasAVerdict) {
  std::size_t files = 0;
  for (const auto& entry : fs::directory_iterator(kFolder / "cases")) {
    EXPECT_TRUE(verdicts().contains(entry.path().filename().string())) << entry.path();
    ++files;
  }
  EXPECT_EQ(files, verdicts().size());
}

}  // namespace
}  // namespace rondo::conformance_verify
