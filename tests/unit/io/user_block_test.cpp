#include "rondo/io/user_block.hpp"

#include <gtest/gtest.h>

#include "expect_error.hpp"
#include "temporary_folder.hpp"

namespace rondo::user_block_test {
namespace {

constexpr const char* kDigestInBlock = "0123456789abcdef";

class UserBlockTest : public testing::Test {
 protected:
  void SetUp() override {
    set_content(path, std::string(kUserBlockBytes, '\0') + "the payload");
    seal_user_block(path, kDigestInBlock, 7);
    sealed = content_of(path);
  }
  void expect_refused(std::initializer_list<std::string> fragments) {
    expect_error(ExitCode::bad_data, fragments, [&] { verify_user_block(path); });
  }

  TemporaryFolder folder;
  std::filesystem::path path = folder / "file.h5";
  std::string sealed;
};

TEST_F(UserBlockTest, TellsWhatWasSealed) {
  ASSERT_EQ(sealed.size(), kUserBlockBytes + 11);
  EXPECT_EQ(sealed.substr(kUserBlockBytes), "the payload");
  const UserBlock block = verify_user_block(path);
  EXPECT_EQ(block.version, 1U);
  EXPECT_EQ(block.problem_digest, kDigestInBlock);
  EXPECT_EQ(block.round, 7);
  EXPECT_EQ(block.payload_bytes, 11U);
  EXPECT_EQ(block.payload_checksum.size(), 32U);
}

TEST_F(UserBlockTest, SealingAgainGivesTheSameBytes) {
  seal_user_block(path, kDigestInBlock, 7);
  EXPECT_EQ(content_of(path), sealed);
}

TEST_F(UserBlockTest, KeepsEmptyAndLongDigests) {
  for (const std::string& digest : {std::string(), std::string(64, 'f')}) {
    seal_user_block(path, digest, -1);
    EXPECT_EQ(verify_user_block(path).problem_digest, digest);
    EXPECT_EQ(verify_user_block(path).round, -1);
  }
}

TEST_F(UserBlockTest, RefusesEveryFlippedBit) {
  for (std::size_t bit = 0; bit < sealed.size() * 8; ++bit) {
    std::string damaged = sealed;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    set_content(path, damaged);
    SCOPED_TRACE(bit);
    expect_refused({"file.h5"});
  }
}

TEST_F(UserBlockTest, RefusesOtherLengths) {
  for (std::size_t length = 0; length < sealed.size(); ++length) {
    set_content(path, sealed.substr(0, length));
    SCOPED_TRACE(length);
    expect_refused({"file.h5"});
  }
  set_content(path, sealed + "x");
  expect_refused({"12 bytes follow", "states 11"});
}

TEST_F(UserBlockTest, NamesWhatDiffers) {
  set_content(path, "\x89HDF\r\n\x1a\n something else");
  expect_refused({"no HDF5 file of Rondo"});
  std::string damaged = sealed;
  damaged.back() = 'D';
  set_content(path, damaged);
  expect_refused({"checksum", "corrupted"});
  damaged = sealed;
  damaged[damaged.find("user-block 1") + 11] = '2';
  set_content(path, damaged);
  expect_refused({"version 2", "reads version 1"});
}

TEST_F(UserBlockTest, NeedsAFile) {
  expect_error(ExitCode::no_input, {"absent"}, [&] { verify_user_block(folder / "absent"); });
  expect_error(ExitCode::cannot_create, {"absent"},
               [&] { seal_user_block(folder / "absent", kDigestInBlock, 0); });
}

}  // namespace
}  // namespace rondo::user_block_test
