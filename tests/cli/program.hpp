#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

/// Runs `rondo`, alone or under mpirun, and keeps what it says.
namespace rondo::test {

struct Outcome {
  int exit_code = -1;  ///< -1: ended by a signal, or by us when its time was up
  std::string out;
  std::string err;
};

/// The strings and a null pointer, as exec takes them, as long as the strings live.
std::vector<char*> pointers(std::vector<std::string>& strings);

/// A program at work.
class Process {
 public:
  /// Starts `rondo ARGUMENTS` in `folder`; on more than one rank under mpirun.
  Process(const std::vector<std::string>& arguments, int ranks, const std::filesystem::path& folder);
  /// Another program.
  Process(const std::string& program, const std::vector<std::string>& arguments, int ranks,
          const std::filesystem::path& folder);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void signal(int number) const;
  /// Returns when SIGSTOP holds the program.
  void wait_until_held() const;
  /// Waits; ends the program when it takes longer than `limit`.
  Outcome wait(std::chrono::seconds limit = std::chrono::seconds(300));

 private:
  std::filesystem::path out_;
  std::filesystem::path err_;
  pid_t pid_ = -1;
};

/// On several ranks the program itself under mpirun; on one rank its command line, in a process that has done
/// others before. What needs the program itself on one rank starts a Process.
Outcome run(const std::vector<std::string>& arguments, int ranks, const std::filesystem::path& folder);

/// A folder that lives as long as the object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

std::string read_file(const std::filesystem::path& path);
nlohmann::json read_json(const std::filesystem::path& path);
bool contains(const std::string& text, const std::string& part);
void write_file(const std::filesystem::path& path, const std::string& text);

/// Words separated by spaces.
std::vector<std::string> split(const std::string& text);

/// Runs `rondo` in a folder of the test's own.
class ProgramTest : public testing::Test {
 protected:
  Outcome rondo(const std::vector<std::string>& arguments, int ranks = 1) const {
    return run(arguments, ranks, folder_.path());
  }
  /// Standard output of a command that has to succeed.
  std::string succeed(const std::vector<std::string>& arguments, int ranks = 1) const;
  std::filesystem::path at(const std::string& name) const { return folder_.path() / name; }

  const TemporaryFolder folder_;
};

}  // namespace rondo::test
