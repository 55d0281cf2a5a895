#include "program.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "command_server.hpp"

namespace rondo::test {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> command_line(const std::vector<std::string>& arguments, int ranks,
                                      const std::string& program) {
  std::vector<std::string> words;
  if (ranks > 1) words = {RONDO_MPIEXEC, "-n", std::to_string(ranks)};
  words.push_back(program);
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

/// An empty file of its own for a stream of the program.
fs::path stream_file() {
  std::string name = (fs::temp_directory_path() / "rondo-stream-XXXXXX").string();
  const int file = mkstemp(name.data());
  if (file < 0) throw std::runtime_error("mkstemp failed");
  close(file);
  return name;
}

}  // namespace

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (std::string& string : strings) result.push_back(string.data());
  result.push_back(nullptr);
  return result;
}

Process::Process(const std::vector<std::string>& arguments, int ranks, const fs::path& folder)
    : Process(RONDO_PROGRAM, arguments, ranks, folder) {}

Process::Process(const std::string& program, const std::vector<std::string>& arguments, int ranks,
                 const fs::path& folder)
    : out_(stream_file()), err_(stream_file()) {
  std::vector<std::string> words = command_line(arguments, ranks, program);
  const std::vector<char*> argv = pointers(words);

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addchdir_np(&files, folder.c_str());
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, out_.c_str(), O_WRONLY | O_TRUNC, 0);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, err_.c_str(), O_WRONLY | O_TRUNC, 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);  // so that its ranks can be ended with it
  const int error = posix_spawn(&pid_, argv[0], &files, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) throw std::runtime_error("cannot start " + words.front());
}

Process::~Process() {
  if (pid_ > 0) {
    kill(-pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  fs::remove(out_);
  fs::remove(err_);
}

void Process::signal(int number) const {
  kill(pid_, number);
}

void Process::wait_until_held() const {
  int status = 0;
  EXPECT_EQ(waitpid(pid_, &status, WUNTRACED), pid_);
  EXPECT_TRUE(WIFSTOPPED(status));
}

Outcome Process::wait(std::chrono::seconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  int status = 0;
  while (waitpid(pid_, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > deadline) {
      ADD_FAILURE() << "still at work after " << limit.count() << " s";
      kill(-pid_, SIGKILL);
      waitpid(pid_, &status, 0);
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  pid_ = -1;
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(out_), read_file(err_)};
}

Outcome run(const std::vector<std::string>& arguments, int ranks, const fs::path& folder) {
  if (ranks > 1) return Process(arguments, ranks, folder).wait();
  static std::optional<CommandServer> server;
  if (!server) server.emplace();
  const fs::path out = stream_file();
  const fs::path err = stream_file();
  const int code = server->run(arguments, folder, out, err, 300);
  const Outcome outcome{code, read_file(out), read_file(err)};
  fs::remove(out);
  fs::remove(err);
  if (code < 0) {
    ADD_FAILURE() << "ended by a signal, or still at work after 300 s";
    server.reset();
  }
  return outcome;
}

TemporaryFolder::TemporaryFolder() {
  std::string name = (fs::temp_directory_path() / "rondo-test-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

nlohmann::json read_json(const std::filesystem::path& path) {
  return nlohmann::json::parse(read_file(path));
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void write_file(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

std::vector<std::string> split(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

std::string ProgramTest::succeed(const std::vector<std::string>& arguments, int ranks) const {
  const Outcome outcome = rondo(arguments, ranks);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  return outcome.out;
}

}  // namespace rondo::test
