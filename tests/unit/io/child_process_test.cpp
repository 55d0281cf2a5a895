#include "child_process.hpp"

#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>

#include "expect_error.hpp"

namespace rondo::child_process_test {
namespace {

TEST(InChildProcess, ReturnsWhatTheChildGives) {
  const std::string large(1 << 20, 'x');  // more than a pipe holds
  EXPECT_EQ(to_text(in_child_process("file", {}, [&] { return to_bytes(large); })), large);
  EXPECT_TRUE(in_child_process("file", {}, [] { return Bytes{}; }).empty());
}

TEST(InChildProcess, PassesErrorsOn) {
  expect_error(ExitCode::no_input, {"not there"}, [] {
    in_child_process("file", {}, []() -> Bytes { throw Error(ExitCode::no_input, "not there"); });
  });
}

TEST(InChildProcess, ACrashAndAnEndlessLoopAreBlamedOnTheInput) {
  expect_error(ExitCode::bad_data, {"file.h5", "Killed"}, [] {
    in_child_process("file.h5", {}, []() -> Bytes {
      ::raise(SIGKILL);
      return {};
    });
  });
  expect_error(ExitCode::bad_data, {"file.h5", "no end of its work"}, [] {
    in_child_process("file.h5", {.cpu_s = 1}, []() -> Bytes {
      std::atomic<bool> ended{false};
      while (!ended.load()) {
      }
      return {};
    });
  });
}

TEST(InChildProcess, MemoryBeyondTheLimitIsBlamedOnTheInput) {
  expect_error(ExitCode::bad_data, {"file.h5"}, [] {
    in_child_process("file.h5", {.memory_bytes = 1 << 26}, []() -> Bytes { return Bytes(1 << 27); });
  });
}

}  // namespace
}  // namespace rondo::child_process_test
