#include "shell.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <vector>

#include "rondo/core/error.hpp"
#include "rondo/core/stopwatch.hpp"

extern char** environ;

namespace rondo::tuning {
namespace {

constexpr std::size_t kMostOutput = std::size_t{1} << 20;
constexpr int kPollMs = 50;

/// By these an MPI program finds the job that it is a rank of; the command may start a job of its own.
bool is_of_this_job(std::string_view variable) {
  for (const char* prefix : {"PMIX_", "PMI_", "ORTE_", "PRTE_", "OMPI_COMM_", "OMPI_UNIVERSE_", "OMPI_APP_",
                             "OMPI_NUM_", "OMPI_FIRST_", "OMPI_FILE_", "OMPI_COMMAND", "OMPI_ARGV",
                             "OMPI_MCA_ess", "OMPI_MCA_orte", "OMPI_MCA_pmix", "OMPI_MCA_initial"}) {
    if (variable.starts_with(prefix)) return true;
  }
  return false;
}

class Shell {
 public:
  explicit Shell(const std::string& command) {
    int ends[2] = {-1, -1};
    if (::pipe2(ends, O_CLOEXEC) != 0) refuse(errno);
    out_ = ends[0];
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    ::posix_spawnattr_init(&attributes);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    ::posix_spawnattr_setpgroup(&attributes, 0);
    std::vector<char*> environment;
    for (char** variable = environ; *variable != nullptr; ++variable) {
      if (!is_of_this_job(*variable)) environment.push_back(*variable);
    }
    environment.push_back(nullptr);
    std::string words[] = {"sh", "-c", command};
    char* arguments[] = {words[0].data(), words[1].data(), words[2].data(), nullptr};
    const int code = ::posix_spawn(&pid_, "/bin/sh", &actions, &attributes, arguments, environment.data());
    ::posix_spawnattr_destroy(&attributes);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    if (code != 0) {
      pid_ = -1;
      ::close(out_);
      refuse(code);
    }
  }
  ~Shell() {
    kill_all();
    if (!has_ended_) ::waitpid(pid_, &status_, 0);
    ::close(out_);
  }
  Shell(const Shell&) = delete;
  Shell& operator=(const Shell&) = delete;

  /// Whether it has ended; what it printed until then comes to `output`.
  bool poll(std::string& output) {
    pollfd ready{out_, POLLIN, 0};
    if (is_open_ && ::poll(&ready, 1, kPollMs) > 0) {
      char piece[1 << 14];
      const ssize_t count = ::read(out_, piece, sizeof piece);
      if (count > 0) output.append(piece, static_cast<std::size_t>(count));
      if (output.size() > 2 * kMostOutput) output.erase(0, output.size() - kMostOutput);
      is_open_ = count > 0 || (count < 0 && errno == EINTR);
      if (is_open_) return false;
    }
    has_ended_ = has_ended_ || ::waitpid(pid_, &status_, WNOHANG) == pid_;
    if (!has_ended_ && !is_open_) ::poll(nullptr, 0, 1);
    // What it left behind may hold the pipe open for ever: its own end counts.
    if (has_ended_ && is_open_) {
      pollfd rest{out_, POLLIN, 0};
      return ::poll(&rest, 1, 0) <= 0;
    }
    return has_ended_;
  }
  void kill_all() const {
    if (pid_ > 0) ::kill(-pid_, SIGKILL);
  }
  int status() const { return status_; }

 private:
  [[noreturn]] static void refuse(int code) {
    throw Error(ExitCode::io, fmt::format("cannot start /bin/sh: {}", ::strerror(code)));
  }

  pid_t pid_ = -1;
  int out_ = -1;
  int status_ = 0;
  bool is_open_ = true;
  bool has_ended_ = false;
};

}  // namespace

ShellOutcome run_shell(const std::string& command, double timeout_s, const std::atomic<bool>* interrupt) {
  Shell shell(command);
  const Stopwatch clock;
  ShellOutcome outcome;
  while (!shell.poll(outcome.output)) {
    if (interrupt != nullptr && interrupt->load())
      throw Error(ExitCode::stopped, "stopped; all measurements are kept, and the same command goes on");
    if (clock.seconds() > timeout_s) {
      outcome.failure = fmt::format("it did not end within {} s", timeout_s);
      return outcome;
    }
  }
  const int status = shell.status();
  if (WIFSIGNALED(status)) {
    outcome.failure =
        fmt::format("it was ended by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
  } else if (WEXITSTATUS(status) != 0) {
    outcome.failure = fmt::format("it ended with code {}", WEXITSTATUS(status));
  }
  return outcome;
}

}  // namespace rondo::tuning
