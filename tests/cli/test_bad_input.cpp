#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "bad_inputs.hpp"

/// Every kind of bad input: exit code, a message with value, reason and remedy, nothing left behind; the same
/// on one rank and on four.
namespace rondo::test::test_bad_input {
namespace {

using Json = nlohmann::json;

/// Names and contents of all files, folders included.
std::map<std::string, std::string> contents(const fs::path& folder) {
  std::map<std::string, std::string> all;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    all[entry.path().lexically_relative(folder)] = entry.is_directory() ? "" : read_file(entry.path());
  }
  return all;
}

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t found = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

/// What one rank said.
Outcome outcome_of(const fs::path& folder, const std::string& name, int rank) {
  const std::string stem = folder / "outcomes" / (name + "." + std::to_string(rank));
  const std::string code = read_file(stem + ".code");
  return {code.empty() ? -1 : std::stoi(code), read_file(stem + ".out"), read_file(stem + ".err")};
}

/// A folder with the result of solve(t.json), made once.
const TemporaryFolder& solved_folder() {
  static const TemporaryFolder folder;
  if (!fs::exists(folder.path() / "t.json")) {
    write_file(folder.path() / "t.json", topology());
    const Outcome outcome = run(solve("t.json"), 1, folder.path());
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  }
  return folder;
}

/// All bad inputs, each in a folder of its own, given to the command line on one rank and then on four: in
/// one start of commands_in_turn each, because a start takes longer than all that is tested.
class Refusals {
 public:
  Refusals() {
    Json cases = Json::array();
    for (const BadInput& bad : bad_inputs()) {
      const fs::path folder = in_turn_.path() / bad.name;
      fs::create_directory(folder);
      if (bad.change_solved) {
        fs::copy(solved_folder().path(), folder, fs::copy_options::recursive);
        bad.change_solved(folder);
      }
      for (const auto& [name, text] : bad.files) {
        fs::create_directories((folder / name).parent_path());
        write_file(folder / name, text);
      }
      before_[bad.name] = contents(folder);
      cases.push_back({{"name", bad.name}, {"arguments", bad.arguments}});
    }
    write_file(in_turn_.path() / "cases.json", cases.dump());
    fs::create_directory(in_turn_.path() / "outcomes");
    for (const int ranks : {1, 4}) {
      const Outcome outcome =
          Process(RONDO_COMMANDS_IN_TURN, {in_turn_.path()}, ranks, in_turn_.path()).wait();
      EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
      for (const BadInput& bad : bad_inputs()) keep_outcomes(bad.name, ranks);
    }
  }

  struct OfRanks {
    std::vector<Outcome> outcomes = {};  ///< of every rank
    bool changed_files = false;
  };
  const OfRanks& of(const std::string& name, int ranks) const { return found_.at({name, ranks}); }

 private:
  void keep_outcomes(const std::string& name, int ranks) {
    OfRanks& found = found_[{name, ranks}];
    for (int rank = 0; rank < ranks; ++rank) {
      found.outcomes.push_back(outcome_of(in_turn_.path(), name, rank));
    }
    found.changed_files = contents(in_turn_.path() / name) != before_[name];
  }

  const TemporaryFolder in_turn_;
  std::map<std::string, std::map<std::string, std::string>> before_;
  std::map<std::pair<std::string, int>, OfRanks> found_;
};

class BadInputs : public testing::TestWithParam<BadInput> {};

TEST_P(BadInputs, AreRefused) {
  static const Refusals refusals;
  const BadInput& bad = GetParam();
  for (const int ranks : {1, 4}) {
    SCOPED_TRACE(testing::Message() << ranks << " ranks");
    const auto& [outcomes, changed_files] = refusals.of(bad.name, ranks);
    std::string err;
    for (const Outcome& outcome : outcomes) {
      EXPECT_EQ(outcome.exit_code, bad.exit_code) << outcome.err;
      EXPECT_EQ(outcome.out.find("finish"), std::string::npos) << outcome.out;
      err += outcome.err;
    }
    EXPECT_EQ(count(err, "rondo: "), 1U) << err;
    for (const std::string& words : bad.in_message)
      EXPECT_NE(err.find(words), std::string::npos) << words << " in\n" << err;
    EXPECT_FALSE(changed_files);
  }
}

INSTANTIATE_TEST_SUITE_P(All, BadInputs, testing::ValuesIn(bad_inputs()),
                         [](const auto& bad) { return bad.param.name; });

/// The program itself, on one rank and on four: what the command line returns is its exit code.
void expect_refusal(const Words& arguments, int exit_code, const Words& in_message, const fs::path& folder) {
  const auto before = contents(folder);
  for (const int ranks : {1, 4}) {
    SCOPED_TRACE(testing::Message() << ranks << " ranks");
    const Outcome outcome = run(arguments, ranks, folder);
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
    EXPECT_EQ(count(outcome.err, "rondo: "), 1U) << outcome.err;
    for (const std::string& words : in_message)
      EXPECT_NE(outcome.err.find(words), std::string::npos) << words << " in\n" << outcome.err;
    EXPECT_EQ(contents(folder), before);
  }
}

TEST(BadFolder, ReadOnly) {
  const TemporaryFolder folder;
  write_file(folder.path() / "t.json", topology());
  fs::create_directory(folder.path() / "out");
  fs::permissions(folder.path() / "out", fs::perms::owner_read | fs::perms::owner_exec);
  expect_refusal(solve("t.json"), 73, {"out", "--output"}, folder.path());
  fs::permissions(folder.path() / "out", fs::perms::owner_all);
}

TEST(BadFile, EndsTheProgramWithItsCode) {
  const TemporaryFolder folder;
  write_file(folder.path() / "t.json", topology("\"latency_us\": 1", "\"latency_us\": -1"));
  expect_refusal(solve("t.json"), 65, {"t.json", "latency"}, folder.path());
}

}  // namespace
}  // namespace rondo::test::test_bad_input
