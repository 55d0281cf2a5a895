#include "rondo/io/round_files.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <limits>
#include <optional>

#include "example_round.hpp"
#include "rondo/core/error.hpp"
#include "temporary_folder.hpp"

namespace rondo::round_files_test {
namespace {

constexpr const char* kDigest = "0123456789abcdef";
constexpr std::uint64_t kTogether = 0;
constexpr std::uint64_t kByRoot = std::numeric_limits<std::uint64_t>::max();

class RoundFilesTogether : public testing::Test {
 protected:
  void SetUp() override {
    if (world->is_root()) own.emplace();
    folder = to_text(on_root(*world, [&] { return to_bytes(own->path().string()); }));
  }
  void TearDown() override { world->barrier(); }  // before the root removes the folder

  std::size_t num_files() const {
    const std::filesystem::directory_iterator entries(folder / "rounds");
    return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
  }

  /// The same error on every rank; nobody waits for another.
  void expect_same_error(const std::filesystem::path& place, const RoundRecord& record,
                         const std::string& fragment) const {
    for (const std::uint64_t together_from : {kTogether, kByRoot}) {
      SCOPED_TRACE(together_from == kTogether ? "written together" : "written by the root");
      expect_same_error(place, record, fragment, together_from);
    }
  }
  void expect_same_error(const std::filesystem::path& place, const RoundRecord& record,
                         const std::string& fragment, std::uint64_t together_from) const {
    std::string message;
    try {
      write_round_file(place, record, kDigest, *world, together_from);
      ADD_FAILURE() << "no error; expected one that mentions '" << fragment << "'";
    } catch (const Error& error) {
      EXPECT_EQ(static_cast<int>(error.code()), static_cast<int>(ExitCode::cannot_create)) << error.what();
      message = error.what();
    }
    EXPECT_NE(message.find(fragment), std::string::npos) << message;
    for (const Bytes& other : world->all_gather(to_bytes(message))) EXPECT_EQ(to_text(other), message);
  }

  std::unique_ptr<Communicator> world = make_world_communicator();
  std::optional<TemporaryFolder> own;  // the root's
  std::filesystem::path folder;
};

TEST_F(RoundFilesTogether, HaveTheBytesThatOneRankWrites) {
  // Fewer rows than ranks, rows that do not divide evenly, more than a piece of any buffer.
  for (const std::size_t num_sends : {0, 1, 2, 3, 5, 1000, 300'001}) {
    const RoundRecord record = example_round(0, num_sends);
    write_round_file(folder, record, kDigest, *world, kTogether);
    if (world->is_root()) {
      EXPECT_TRUE(text_of(read_round_file(round_file_path(folder, 0))) == text_of(record)) << num_sends;
      const TemporaryFolder alone;
      write_round_file(alone.path(), record, kDigest, *make_local_communicator(), kByRoot);
      EXPECT_TRUE(content_of(round_file_path(folder, 0)) == content_of(round_file_path(alone.path(), 0)))
          << num_sends;
      EXPECT_EQ(num_files(), 1U);
    }
    world->barrier();
  }
}

TEST_F(RoundFilesTogether, FollowOneAnother) {
  for (int i = 0; i < 3; ++i) write_round_file(folder, example_round(i, 50), kDigest, *world);
  const RoundPrefix prefix = read_round_files(folder, kDigest);
  EXPECT_EQ(prefix.stopped_by, "");
  ASSERT_EQ(prefix.rounds.size(), 3U);
  EXPECT_EQ(text_of(prefix.rounds[2]), text_of(example_round(2, 50)));
}

TEST_F(RoundFilesTogether, FailAlikeEverywhere) {
  expect_same_error(folder / "absent", example_round(0), "No such file");
  expect_same_error("/proc", example_round(0), "/proc/rounds");  // root may write into read-only folders
  write_round_file(folder, example_round(0), kDigest, *world);
  EXPECT_EQ(num_files(), 1U);
}

TEST_F(RoundFilesTogether, RootsFileLimitLeavesThePreviousFile) {
  write_round_file(folder, example_round(0), kDigest, *world);
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit limit = before;
  limit.rlim_cur = 100'000;
  if (world->is_root()) ::setrlimit(RLIMIT_FSIZE, &limit);
  expect_same_error(folder, example_round(0, 10'000), "too large");
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(text_of(read_round_file(round_file_path(folder, 0))), text_of(example_round(0)));
  EXPECT_EQ(num_files(), 1U);
}

/// A file system of 1 MiB at `path` while it lives.
class SmallDisk {
 public:
  explicit SmallDisk(std::filesystem::path path)
      : path_(std::move(path)), mounted_(::mount("tmpfs", path_.c_str(), "tmpfs", 0, "size=1m") == 0) {}
  ~SmallDisk() {
    if (mounted_) ::umount2(path_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  bool mounted() const { return mounted_; }

 private:
  std::filesystem::path path_;
  bool mounted_;
};

TEST_F(RoundFilesTogether, FullDiskLeavesThePreviousFile) {
  std::optional<SmallDisk> disk;  // the root's
  if (world->is_root()) disk.emplace(folder);
  if (world->max(disk && disk->mounted() ? 1 : 0) == 0) GTEST_SKIP() << "may not mount";
  write_round_file(folder, example_round(0), kDigest, *world);
  for (int repeat = 0; repeat < 3; ++repeat) {
    expect_same_error(folder, example_round(0, 100'000), "No space left");
  }
  EXPECT_EQ(text_of(read_round_file(round_file_path(folder, 0))), text_of(example_round(0)));
  EXPECT_EQ(num_files(), 1U);
  world->barrier();
  write_round_file(folder, example_round(1, 10'000), kDigest, *world);
  EXPECT_EQ(text_of(read_round_file(round_file_path(folder, 1))), text_of(example_round(1, 10'000)));
  world->barrier();  // before the root unmounts it
}

}  // namespace
}  // namespace rondo::round_files_test
