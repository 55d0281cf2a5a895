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

#include "file_descriptor.hpp"
#include "rondo/core/error.hpp"
#include "rondo/parallel/messages.hpp"

namespace rondo {
namespace {

enum class Result : char { value = 'v', error = 'e' };

/// What the child has to say: a value, or an error's code and message.
Bytes outcome_of(const std::string& subject, const std::function<Bytes()>& work) {
  MessageWriter message;
  try {
    const Bytes value = work();
    message.put(Result::value);
    message.put_all(value);
    return message.take();
  } catch (const Error& error) {
    message.put(Result::error);
    message.put(error.code());
    message.put_all(std::string_view(error.what()));
  } catch (const std::exception& exception) {  // not enough memory to read the file
    message.put(Result::error);
    message.put(ExitCode::bad_data);
    message.put_all(std::string_view(
        fmt::format("{}: reading it needs more than is available: {}", subject, exception.what())));
  }
  return message.take();
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

[[noreturn]] void be_child(int to_parent, pid_t parent, const std::string& subject, const ChildLimits& limits,
                           const std::function<Bytes()>& work) {
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
    const FileDescriptor out(to_parent);
    const Bytes bytes = outcome_of(subject, work);
    write_all(out, bytes.data(), bytes.size(), "pipe");
  } catch (...) {
    ::_exit(1);
  }
  ::_exit(0);  // the parent alone runs its exit handlers
}

Bytes read_to_end(const FileDescriptor& file) {
  constexpr std::size_t kPieceBytes = std::size_t{1} << 16;
  Bytes bytes;
  for (std::size_t count = kPieceBytes; count == kPieceBytes;) {
    const std::size_t before = bytes.size();
    bytes.resize(before + kPieceBytes);
    count = read_some(file, bytes.data() + before, kPieceBytes, "pipe");
    bytes.resize(before + count);
  }
  return bytes;
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
  const FileDescriptor from_child(ends[0]);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) be_child(ends[1], parent, subject, limits, work);
  ::close(ends[1]);
  if (child < 0) throw_system_error(ExitCode::io, "cannot start a process to read", subject, errno);
  const Bytes bytes = read_to_end(from_child);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    throw Error(
        ExitCode::bad_data,
        fmt::format("{}: the library that reads it ended with {}: the file is malformed behind a right "
                    "checksum",
                    subject, describe(status)));
  }
  MessageReader message(bytes);
  if (message.get<Result>() == Result::value) return message.get_all<Bytes>();
  const auto code = message.get<ExitCode>();
  throw Error(code, message.get_all<std::string>());
}

}  // namespace rondo
