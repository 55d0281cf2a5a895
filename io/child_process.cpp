#include "child_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <exception>
#include <optional>
#include <string_view>

#include "file_descriptor.hpp"
#include "rondo/core/error.hpp"
#include "rondo/parallel/messages.hpp"

namespace rondo {
namespace {

enum class Result : char { value = 'v', error = 'e' };

/// What the child has to say: a value, or an error's code and message. The length goes first, so that the
/// parent makes room once.
struct Outcome {
  Result result = Result::value;
  Bytes bytes = {};
};

Outcome failed(ExitCode code, std::string_view what) {
  MessageWriter message;
  message.put(code);
  message.put_all(what);
  return {Result::error, message.take()};
}

Outcome outcome_of(const std::string& subject, const std::function<Bytes()>& work) {
  try {
    return {Result::value, work()};
  } catch (const Error& error) {
    return failed(error.code(), error.what());
  } catch (const std::exception& exception) {  // not enough memory to read the file
    return failed(ExitCode::bad_data,
                  fmt::format("{}: reading it needs more than is available: {}", subject, exception.what()));
  }
}

void write_outcome(const FileDescriptor& out, const Outcome& outcome) {
  const std::uint64_t length = outcome.bytes.size();
  write_all(out, &outcome.result, sizeof outcome.result, "pipe");
  write_all(out, &length, sizeof length, "pipe");
  write_all(out, outcome.bytes.data(), outcome.bytes.size(), "pipe");
}

/// Bytes of address space that this process has.
rlim_t address_space() {
  unsigned long pages = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "re")) {
    if (std::fscanf(file, "%lu", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  return pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE));
}

[[noreturn]] void be_child(const int (&ends)[2], pid_t parent, const std::string& subject,
                           const ChildLimits& limits, const std::function<Bytes()>& work) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // it shares the parent's lock on the run folder
  if (::getppid() != parent) ::_exit(1);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTERM, SIGINT, SIGUSR1, SIGALRM}) {
    ::signal(signal, SIG_DFL);
  }
  const rlimit no_core = {0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  const rlimit cpu = {limits.cpu_s, limits.cpu_s + 1};
  ::setrlimit(RLIMIT_CPU, &cpu);
  if (const rlim_t used = address_space(); used > 0) {
    const rlimit memory = {used + limits.memory_bytes, used + limits.memory_bytes};
    ::setrlimit(RLIMIT_AS, &memory);
  }
  try {
    ::close(ends[0]);  // so that writing ends where the parent no longer reads
    const FileDescriptor out(ends[1]);
    write_outcome(out, outcome_of(subject, work));
  } catch (...) {
    ::_exit(1);
  }
  ::_exit(0);  // the parent alone runs its exit handlers
}

/// Nothing where the child has ended before it had written all.
std::optional<Outcome> read_outcome(const FileDescriptor& in, std::uint64_t most_bytes) {
  Outcome outcome;
  std::uint64_t length = 0;
  if (read_some(in, &outcome.result, sizeof outcome.result, "pipe") < sizeof outcome.result) return {};
  if (read_some(in, &length, sizeof length, "pipe") < sizeof length || length > most_bytes) return {};
  outcome.bytes.resize(length);
  if (read_some(in, outcome.bytes.data(), length, "pipe") < length) return {};
  return outcome;
}

std::string describe(int status) {
  if (!WIFSIGNALED(status)) return fmt::format("code {}", WEXITSTATUS(status));
  return WTERMSIG(status) == SIGXCPU ? "no end of its work" : ::strsignal(WTERMSIG(status));
}

}  // namespace

Bytes in_child_process(const std::string& subject, const ChildLimits& limits,
                       const std::function<Bytes()>& work) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) throw_system_error(ExitCode::io, "cannot make", "pipe", errno);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) be_child(ends, parent, subject, limits, work);
  ::close(ends[1]);
  std::optional<FileDescriptor> from_child(std::in_place, ends[0]);
  if (child < 0) throw_system_error(ExitCode::io, "cannot start a process to read", subject, errno);
  std::optional<Outcome> outcome = read_outcome(*from_child, limits.memory_bytes);
  from_child.reset();
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!outcome || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    throw Error(
        ExitCode::bad_data,
        fmt::format("{}: the library that reads it ended with {}: the file is malformed behind a right "
                    "checksum",
                    subject, describe(status)));
  }
  if (outcome->result == Result::value) return std::move(outcome->bytes);
  MessageReader message(outcome->bytes);
  const auto code = message.get<ExitCode>();
  throw Error(code, message.get_all<std::string>());
}

}  // namespace rondo
