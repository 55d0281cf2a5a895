#include "rondo/io/files.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "expect_error.hpp"
#include "temporary_folder.hpp"

namespace rondo::files_test {
namespace {

TEST(ReadTextFile, ReturnsEveryByte) {
  const TemporaryFolder folder;
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{5}, std::size_t{1} << 20, (std::size_t{1} << 20) + 3}) {
    std::string text(size, 'x');
    if (size > 0) text.back() = '\0';
    set_content(folder / "file", text);
    EXPECT_EQ(read_text_file(folder / "file"), text);
  }
}

TEST(ReadTextFile, SaysWhyItCannot) {
  const TemporaryFolder folder;
  set_content(folder / "file", "12345");
  expect_error(ExitCode::no_input, {"absent", "No such file"}, [&] { read_text_file(folder / "absent"); });
  expect_error(ExitCode::no_input, {"directory"}, [&] { read_text_file(folder.path()); });
  expect_error(ExitCode::no_input, {"file/inner"}, [&] { read_text_file(folder / "file/inner"); });
  expect_error(ExitCode::unavailable, {"larger than 4 bytes"}, [&] { read_text_file(folder / "file", 4); });
  EXPECT_EQ(read_text_file(folder / "file", 5), "12345");
}

TEST(WriteAtomically, ReplacesTheFileAndLeavesNothingElse) {
  const TemporaryFolder folder;
  write_text_file(folder / "file", "first");
  write_text_file(folder / "file", "2nd");
  EXPECT_EQ(content_of(folder / "file"), "2nd");
  EXPECT_EQ(folder.num_files(), 1U);
}

TEST(WriteAtomically, ReplacesALinkAndNotWhatItLeadsTo) {
  const TemporaryFolder folder;
  set_content(folder / "precious", "kept");
  std::filesystem::create_symlink(folder / "precious", folder / "file");
  write_text_file(folder / "file", "new");
  EXPECT_EQ(content_of(folder / "precious"), "kept");
  EXPECT_EQ(content_of(folder / "file"), "new");
}

TEST(WriteAtomically, GivesTheFileOrdinaryPermissions) {
  const TemporaryFolder folder;
  const mode_t before = ::umask(022);
  write_text_file(folder / "file", "x");
  ::umask(before);
  struct stat status = {};
  ASSERT_EQ(::stat((folder / "file").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0644U);
}

TEST(RemoveTemporaryFiles, RemovesWhatKilledProcessesLeave) {
  const TemporaryFolder folder;
  for (const char* name : {".rondo-0123456789abcdef.tmp", ".rondo-notes", "file"})
    set_content(folder / name, "x");
  remove_temporary_files(folder.path());
  EXPECT_EQ(folder.num_files(), 2U);
  EXPECT_FALSE(std::filesystem::exists(folder / ".rondo-0123456789abcdef.tmp"));
  remove_temporary_files(folder / "absent");
}

TEST(WriteAtomically, SaysWhyItCannot) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "sub");
  set_content(folder / "file", "x");
  expect_error(ExitCode::cannot_create, {"sub", "directory"}, [&] { write_text_file(folder / "sub", "x"); });
  expect_error(ExitCode::cannot_create, {"absent/file", "No such file"},
               [&] { write_text_file(folder / "absent/file", "x"); });
  expect_error(ExitCode::cannot_create, {"file/inner", "Not a directory"},
               [&] { write_text_file(folder / "file/inner", "x"); });
  // Root may write into read-only folders, but not into this one.
  expect_error(ExitCode::cannot_create, {"/proc/rondo"}, [] { write_text_file("/proc/rondo", "x"); });
  EXPECT_EQ(folder.num_files(), 2U);
}

/// Runs `action` in a process whose files may not grow beyond `bytes`: what a full disk looks like to it.
template <class Action>
int exit_code_with_file_limit(rlim_t bytes, Action action) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {bytes, bytes};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    int code = 0;
    try {
      action();
    } catch (const Error& error) {
      code = static_cast<int>(error.code());
    }
    ::_exit(code);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(WriteAtomically, FullDiskLeavesThePreviousFile) {
  const TemporaryFolder folder;
  write_text_file(folder / "file", "first");
  const auto write_much = [&] { write_text_file(folder / "file", std::string(100'000, 'x')); };
  EXPECT_EQ(exit_code_with_file_limit(10'000, write_much), static_cast<int>(ExitCode::cannot_create));
  EXPECT_EQ(content_of(folder / "file"), "first");
  EXPECT_EQ(folder.num_files(), 1U);
  EXPECT_EQ(exit_code_with_file_limit(100'000, write_much), 0);
  EXPECT_EQ(content_of(folder / "file").size(), 100'000U);
}

TEST(DigestOf, IsXxh3) {
  EXPECT_EQ(digest_of(""), "2d06800538d394c2");  // XXH3_64bits of nothing, as xxHash specifies it
  EXPECT_NE(digest_of("a"), digest_of("b"));
  EXPECT_EQ(digest_of("a", 1), digest_of("a"));
}

}  // namespace
}  // namespace rondo::files_test
