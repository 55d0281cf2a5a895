#include "rondo/io/run_lock.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "expect_error.hpp"
#include "rondo/io/files.hpp"
#include "temporary_folder.hpp"

namespace rondo::run_lock_test {
namespace {

using namespace std::chrono_literals;

constexpr RunLock::Timing kQuick{.heartbeat = 30ms, .missed = 4};

/// A lock file as an owner of this machine's process `pid` would have left it, with `place` or another.
std::string file_of(const LockOwner& like, const std::string& place, std::int64_t pid, int heartbeats = 0) {
  std::string text = "rondo-lock 2\nhost elsewhere\npid " + std::to_string(pid) + "\njob 77\nplace " + place +
                     "\nstarted " + std::to_string(like.started) + "\ntoken 0123456789abcdef\nheartbeats " +
                     std::to_string(heartbeats) + "\n";
  text += "checksum " + digest_of(text) + "\n";
  text.resize(1024, ' ');
  return text;
}

class RunLockTest : public testing::Test {
 protected:
  void expect_refused(std::initializer_list<std::string> fragments) {
    expect_error(ExitCode::cannot_create, fragments, [&] { RunLock(folder.path(), {}, kQuick); });
  }
  LockOwner owner_while_held() {
    const RunLock lock(folder.path(), {}, kQuick);
    return read_lock_owner(folder.path()).value();
  }

  TemporaryFolder folder;
};

TEST_F(RunLockTest, FollowsNoLinkOutOfTheFolder) {
  const TemporaryFolder elsewhere;
  set_content(elsewhere / "precious", "kept");
  std::filesystem::create_symlink(elsewhere / "precious", folder / "lock");
  expect_refused({"lock", "symbolic link", "remove it"});
  EXPECT_EQ(content_of(elsewhere / "precious"), "kept");
}

TEST_F(RunLockTest, NamesItsOwnerAndGoesWithIt) {
  {
    const RunLock lock(folder.path(), {}, kQuick);
    const auto owner = read_lock_owner(folder.path());
    ASSERT_TRUE(owner);
    EXPECT_EQ(owner->pid, ::getpid());
    EXPECT_EQ(state_of(*owner), OwnerState::alive);
    expect_refused({"another run", std::to_string(::getpid())});
    lock.check();
  }
  EXPECT_EQ(folder.num_files(), 0U);
}

TEST_F(RunLockTest, ADeadOwnerOfThisMachineIsReplacedAtOnce) {
  const pid_t child = ::fork();
  if (child == 0) {
    new RunLock(folder.path());  // as after a SIGKILL, nothing is removed
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  const auto left = read_lock_owner(folder.path());
  ASSERT_TRUE(left);
  EXPECT_EQ(left->pid, child);
  EXPECT_EQ(state_of(*left), OwnerState::dead);
  bool waited = false;
  const RunLock lock(folder.path(), [&](const std::string&) { waited = true; });
  EXPECT_FALSE(waited);
  EXPECT_EQ(read_lock_owner(folder.path())->pid, ::getpid());
}

TEST_F(RunLockTest, APidThatCameAgainIsNotTheOwner) {
  LockOwner other = owner_while_held();
  EXPECT_EQ(state_of(other), OwnerState::alive);
  ++other.started;
  EXPECT_EQ(state_of(other), OwnerState::dead);
}

TEST_F(RunLockTest, AnOwnerElsewhereIsDeadOnceItsHeartbeatStands) {
  set_content(folder / "lock", file_of(owner_while_held(), "another-boot/pid:[1]", ::getpid()));
  std::string told;
  const RunLock lock(
      folder.path(), [&](const std::string& line) { told = line; }, kQuick);
  EXPECT_NE(told.find("elsewhere (job 77)"), std::string::npos) << told;
  EXPECT_EQ(read_lock_owner(folder.path())->pid, ::getpid());
}

TEST_F(RunLockTest, AnOwnerElsewhereThatLivesIsRespected) {
  const LockOwner here = owner_while_held();
  set_content(folder / "lock", file_of(here, "another-boot/pid:[1]", 1));
  std::thread heart([&] {
    std::this_thread::sleep_for(50ms);
    set_content(folder / "lock", file_of(here, "another-boot/pid:[1]", 1, 1));
  });
  expect_refused({"process 1 on elsewhere (job 77)"});
  heart.join();
}

TEST_F(RunLockTest, WhoLostItsLockWritesNoMore) {
  const RunLock lock(folder.path(), {}, kQuick);
  const LockOwner me = read_lock_owner(folder.path()).value();
  set_content(folder / "lock", file_of(me, me.place, 1));
  std::this_thread::sleep_for(10 * kQuick.heartbeat);
  expect_error(ExitCode::cannot_create, {"taken it over"}, [&] { lock.check(); });
}

TEST_F(RunLockTest, FilesThatCannotBeUnderstoodAreOfSomebodyUnknown) {
  for (const std::string content : {"", "rondo-lock 2\nhost", "\xff\xfe"}) {
    set_content(folder / "lock", content);
    EXPECT_FALSE(read_lock_owner(folder.path()));
    bool waited = false;
    const RunLock lock(
        folder.path(), [&](const std::string&) { waited = true; }, kQuick);
    EXPECT_TRUE(waited);
  }
}

TEST_F(RunLockTest, NoFlippedBitIsBelieved) {
  const LockOwner me = owner_while_held();
  const std::string whole = file_of(me, me.place, 1);
  set_content(folder / "lock", whole);
  ASSERT_TRUE(read_lock_owner(folder.path()));
  for (std::size_t bit = 0; bit < 8 * whole.size(); bit += 5) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    set_content(folder / "lock", damaged);
    EXPECT_FALSE(read_lock_owner(folder.path())) << "bit " << bit;
  }
}

TEST_F(RunLockTest, AFolderThatIsNotThereIsNamed) {
  expect_error(ExitCode::cannot_create, {"absent"}, [&] { RunLock(folder / "absent"); });
}

}  // namespace
}  // namespace rondo::run_lock_test
