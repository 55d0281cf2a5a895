#include "rondo/io/run_lock.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "file_descriptor.hpp"
#include "lock_owner.hpp"
#include "rondo/io/files.hpp"

namespace rondo {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

[[noreturn]] void refuse(const fs::path& folder, const std::string& why) {
  throw Error(ExitCode::cannot_create, fmt::format("cannot work in the folder {}: {}", folder.string(), why));
}

[[noreturn]] void refuse_held(const fs::path& folder, const std::optional<LockOwner>& owner) {
  refuse(folder, fmt::format("another run is at work in it{}; wait for it or choose another folder",
                             owner ? ": " + owner->description() : ""));
}

std::string content_of(const fs::path& file) {
  try {
    return read_text_file(file, 1 << 16);  // opened again, so that a network file system asks its server
  } catch (const Error&) {
    return "";
  }
}

enum class Flock { taken, held_by_another, unsupported };

Flock try_flock(const FileDescriptor& file) {
  if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) return Flock::taken;
  return errno == EWOULDBLOCK ? Flock::held_by_another : Flock::unsupported;
}

}  // namespace

class RunLock::Held {
 public:
  Held(const fs::path& folder, const std::function<void(const std::string&)>& notice, Timing timing)
      : folder_(folder), path_(folder / "lock"), timing_(timing), me_(this_process()) {
    take(notice);
    start_heart();
  }

  ~Held() {
    {
      const std::lock_guard guard(mutex_);
      ending_ = true;
    }
    wake_.notify_all();
    heart_.join();
    std::error_code ignored;
    if (is_mine()) fs::remove(path_, ignored);
  }

  void check() const {
    if (lost_) {
      refuse(folder_,
             "another run has taken it over, because this one gave no heartbeat for too long; nothing "
             "more is written");
    }
  }

 private:
  void take(const std::function<void(const std::string&)>& notice) {
    for (;;) {
      const bool is_new = open();
      const Flock flock = try_flock(*file_);
      if (flock == Flock::held_by_another) refuse_held(folder_, read_lock_owner(folder_));
      // The run before may have removed the file between our open and our lock: then this guards nothing.
      struct stat held = {};
      struct stat there = {};
      if (::fstat(file_->get(), &held) != 0 || ::stat(path_.c_str(), &there) != 0 ||
          held.st_ino != there.st_ino) {
        continue;
      }
      const bool wait_for_others = !is_new && !must_be_dead(flock);
      if (wait_for_others) wait_for_heartbeats(notice);
      try {
        write();
      } catch (const Error&) {  // a full disk: the next run must not wait for an owner without a name
        ::unlink(path_.c_str());
        throw;
      }
      if (wait_for_others) settle();
      return;
    }
  }

  /// Whether there was no file before.
  bool open() {
    constexpr mode_t kMode = 0644;
    file_.emplace(::open(path_.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, kMode));
    if (file_->valid()) return true;
    // A folder from another source may hold a link there that leads to any file of this user.
    if (errno == EEXIST)
      file_.emplace(::open(path_.c_str(), O_CREAT | O_RDWR | O_NOFOLLOW | O_CLOEXEC, kMode));
    if (!file_->valid() && errno == ELOOP) {
      throw Error(ExitCode::cannot_create,
                  fmt::format("'{}' is a symbolic link, which may lead anywhere; remove it", path_.string()));
    }
    if (!file_->valid())
      throw_system_error(ExitCode::cannot_create, "cannot lock the folder", folder_, errno);
    return false;
  }

  /// Refuses an owner of this machine that lives; nothing can be said of those elsewhere.
  bool must_be_dead(Flock flock) const {
    const std::optional<LockOwner> owner = read_lock_owner(folder_);
    if (!owner) return false;
    const OwnerState state = state_of(*owner);
    if (state == OwnerState::elsewhere) return false;
    if (state == OwnerState::alive && flock == Flock::unsupported) refuse_held(folder_, owner);
    return true;
  }

  void wait_for_heartbeats(const std::function<void(const std::string&)>& notice) const {
    const std::string before = content_of(path_);
    const std::optional<LockOwner> owner = parse_lock_owner(before);
    if (notice) {
      notice(fmt::format("{} is locked by {}; waiting {:.0f} s for its heartbeat", folder_.string(),
                         owner ? owner->description() : "an unknown process",
                         std::chrono::duration<double>(timing_.heartbeat * timing_.missed).count()));
    }
    for (int i = 0; i < timing_.missed; ++i) {
      std::this_thread::sleep_for(timing_.heartbeat);
      if (content_of(path_) != before) refuse_held(folder_, read_lock_owner(folder_));
    }
  }

  /// Of several that found the owner dead at the same time, the last to write wins.
  void settle() const {
    std::this_thread::sleep_for(timing_.heartbeat / 3);
    if (!is_mine()) refuse_held(folder_, read_lock_owner(folder_));
  }

  void write() const {
    move_to(*file_, 0, path_);
    const std::string text = to_text(me_);
    write_all(*file_, text.data(), text.size(), path_);
    if (::ftruncate(file_->get(), static_cast<off_t>(text.size())) != 0 || ::fsync(file_->get()) != 0) {
      throw_system_error(ExitCode::cannot_create, "cannot write", path_, errno);
    }
  }

  bool is_mine() const {
    const std::optional<LockOwner> owner = read_lock_owner(folder_);
    return owner && owner->token == me_.token;
  }

  void start_heart() {
    // Signals are for the threads that work.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    heart_ = std::thread([this] { beat(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  void beat() {
    std::unique_lock guard(mutex_);
    while (!wake_.wait_for(guard, timing_.heartbeat, [this] { return ending_; })) {
      if (!is_mine()) {
        lost_ = true;
        return;
      }
      ++me_.heartbeats;
      try {
        write();
      } catch (const Error&) {  // the next one may succeed
      }
    }
  }

  const fs::path folder_;
  const fs::path path_;
  const Timing timing_;
  LockOwner me_;
  std::optional<FileDescriptor> file_;
  std::atomic<bool> lost_{false};
  std::mutex mutex_;
  std::condition_variable wake_;
  bool ending_ = false;
  std::thread heart_;
};

RunLock::RunLock(const fs::path& folder, const std::function<void(const std::string&)>& notice)
    : RunLock(folder, notice, Timing()) {}

RunLock::RunLock(const fs::path& folder, const std::function<void(const std::string&)>& notice, Timing timing)
    : held_(std::make_unique<Held>(folder, notice, timing)) {}

RunLock::~RunLock() = default;

void RunLock::check() const {
  held_->check();
}

}  // namespace rondo
