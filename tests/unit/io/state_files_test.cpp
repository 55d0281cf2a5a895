#include "rondo/io/state_files.hpp"

#include <gtest/gtest.h>

#include "damaged_files.hpp"
#include "rondo/io/json_files.hpp"

namespace rondo::state_files_test {
namespace {

constexpr const char* kDigest = "0123456789abcdef";

class StateFiles : public testing::Test {
 protected:
  void keep(const std::string& state, const std::string& name = "search") {
    write_state_file(folder.path(), name, kDigest, to_bytes(state));
  }
  FoundState newest(const std::string& digest = kDigest) {
    return read_newest_state(folder.path(), "search", digest);
  }
  std::filesystem::path file(int number) { return state_file_path(folder.path(), "search", number); }

  TemporaryFolder folder;
};

TEST_F(StateFiles, TheNewestOfANameIsFound) {
  EXPECT_FALSE(newest().state);
  for (const char* state : {"first", "", "third"}) {
    keep(state);
    keep("another's", "search-too");
    ASSERT_TRUE(newest().state);
    EXPECT_EQ(to_text(*newest().state), state);
  }
  EXPECT_EQ(newest().number, 2);
  EXPECT_EQ(list_states(folder.path()), (std::vector<std::string>{"search", "search-too"}));
}

TEST_F(StateFiles, TheOneBeforeIsKeptAndNoOther) {
  for (const char* state : {"0", "1", "2", "3"}) keep(state);
  EXPECT_FALSE(std::filesystem::exists(file(1)));
  EXPECT_TRUE(std::filesystem::exists(file(2)));
  remove_state_files(folder.path());
  EXPECT_EQ(folder.num_files(), 0U);
}

TEST_F(StateFiles, ADamagedOneIsNamedAndTheOneBeforeUsed) {
  keep("the one before");
  keep("the newest");
  expect_damage_refused(file(1), [&] {
    const FoundState found = newest();
    ASSERT_EQ(to_text(found.state.value()), "the one before");
    ASSERT_EQ(found.damaged.size(), 1U);
    throw Error(ExitCode::bad_data, found.damaged[0]);
  });
}

TEST_F(StateFiles, ADamagedOneThatIsNotNeededIsNamedAsWell) {
  keep("the one before");
  keep("the newest");
  const auto damaged = [&] { return find_damaged_states(folder.path(), "search", kDigest); };
  EXPECT_TRUE(damaged().empty());
  std::filesystem::resize_file(file(0), 520);
  EXPECT_TRUE(newest().damaged.empty());
  ASSERT_EQ(damaged().size(), 1U);
  EXPECT_NE(damaged()[0].find("search-00000.state"), std::string::npos);
}

TEST_F(StateFiles, OnesOfAnotherProblemOrNumberAreNotUsed) {
  keep("a");
  EXPECT_FALSE(newest("another digest").state);
  std::filesystem::copy_file(file(0), file(5));
  EXPECT_EQ(newest().number, 0);
  EXPECT_EQ(newest().damaged.size(), 1U);
}

TEST(SealedJson, RefusesEveryFlippedBit) {
  const Json json = {{"format", "rondo-problem"}, {"size_bytes", 1e9}, {"list", {1, 2.5, "x"}}};
  const std::string text = sealed_text(json);
  EXPECT_EQ(parse_sealed_json(text, "file"), json);
  EXPECT_EQ(sealed_text(parse_sealed_json(text, "file")), text);
  for (std::size_t bit = 0; bit < text.size() * 8; ++bit) {
    std::string damaged = text;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    SCOPED_TRACE(bit);
    expect_error(ExitCode::bad_data, {"file"}, [&] { parse_sealed_json(damaged, "file"); });
  }
  expect_error(ExitCode::bad_data, {"checksum"}, [&] { parse_sealed_json("{\"a\": 1}\n", "file"); });
}

}  // namespace
}  // namespace rondo::state_files_test
