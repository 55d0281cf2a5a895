#include "lock_owner.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <sstream>
#include <system_error>

#include "random_hex.hpp"
#include "rondo/core/error.hpp"
#include "rondo/io/files.hpp"

namespace rondo {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBytes = 1024;

std::string host_name() {
  std::array<char, 256> name = {};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

/// Equal for two processes exactly where each can ask the kernel about the other by its pid.
std::string place_of_this_process() {
  std::error_code ignored;
  const std::string pids = fs::read_symlink("/proc/self/ns/pid", ignored).string();
  std::string boot;
  try {
    boot = read_text_file("/proc/sys/kernel/random/boot_id", 1024);
  } catch (const Error&) {
    boot = host_name() + '\n';
  }
  return boot.substr(0, boot.find('\n')) + "/" + pids;
}

/// Field 22 of /proc/PID/stat; 0 where there is no such process. The name in front may hold blanks.
std::int64_t start_of(std::int64_t pid) {
  constexpr int kFieldsBetween = 19;  // those from the state on
  std::string text;
  try {
    text = read_text_file(fmt::format("/proc/{}/stat", pid), 1 << 16);
  } catch (const Error&) {
    return 0;
  }
  std::istringstream fields(text.substr(std::min(text.size(), text.rfind(')') + 1)));
  std::string field;
  for (int i = 0; i < kFieldsBetween; ++i) fields >> field;
  std::int64_t started = 0;
  fields >> started;
  return started;
}

/// The number that the batch system gave, or "-".
std::string job_of_this_process() {
  for (const char* name : {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    std::string job(value);
    for (char& c : job) {
      if (c == '\n' || c == ' ') c = '_';
    }
    return job.substr(0, 64);
  }
  return "-";
}

}  // namespace

LockOwner this_process() {
  const auto pid = static_cast<std::int64_t>(::getpid());
  return {.host = host_name(),
          .pid = pid,
          .job = job_of_this_process(),
          .place = place_of_this_process(),
          .started = start_of(pid),
          .token = random_hex(),
          .heartbeats = 0};
}

std::string LockOwner::description() const {
  return fmt::format("process {} on {}{}", pid, host, job == "-" ? "" : fmt::format(" (job {})", job));
}

std::string to_text(const LockOwner& owner) {
  std::string text = fmt::format(
      "rondo-lock 2\nhost {}\npid {}\njob {}\nplace {}\nstarted {}\ntoken {}\nheartbeats {}\n", owner.host,
      owner.pid, owner.job, owner.place, owner.started, owner.token, owner.heartbeats);
  text += fmt::format("checksum {}\n", digest_of(text));
  text.resize(kBytes, ' ');
  return text;
}

std::optional<LockOwner> parse_lock_owner(std::string_view text) {
  std::istringstream lines{std::string(text)};
  const auto take = [&](std::string_view name, auto& value) {
    std::string word;
    return lines >> word && word == name && lines >> value;
  };
  LockOwner owner;
  int version = 0;
  const bool understood = take("rondo-lock", version) && take("host", owner.host) && take("pid", owner.pid) &&
                          take("job", owner.job) && take("place", owner.place) &&
                          take("started", owner.started) && take("token", owner.token) &&
                          take("heartbeats", owner.heartbeats);
  if (!understood || to_text(owner) != text) return std::nullopt;
  return owner;
}

std::optional<LockOwner> read_lock_owner(const fs::path& folder) {
  try {
    return parse_lock_owner(read_text_file(folder / "lock", 1 << 16));
  } catch (const Error&) {
    return std::nullopt;
  }
}

OwnerState state_of(const LockOwner& owner) {
  if (owner.place != place_of_this_process()) return OwnerState::elsewhere;
  const std::int64_t started = owner.pid > 0 ? start_of(owner.pid) : 0;
  return started != 0 && started == owner.started ? OwnerState::alive : OwnerState::dead;
}

}  // namespace rondo
