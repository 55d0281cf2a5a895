#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

/// One run at a time in a folder, on one machine or several: a batch system may start a job twice.
namespace rondo {

/// Who holds a folder, as its file `lock` says: a few lines of text.
struct LockOwner {
  std::string host = {};
  std::int64_t pid = 0;
  std::string job = {};          ///< the batch system's number of the job, "-" outside of one
  std::string place = {};        ///< boot of the machine and process namespace: where `pid` means something
  std::int64_t started = 0;      ///< of the process, in the kernel's ticks since boot: a pid may be reused
  std::string token = {};        ///< random, of this very lock
  std::uint64_t heartbeats = 0;  ///< counts up while the owner lives

  /// "process 4711 on node17 (job 1234)".
  std::string description() const;
};

/// The owner that FOLDER/lock names; nothing where there is no such file or it cannot be understood.
std::optional<LockOwner> read_lock_owner(const std::filesystem::path& folder);

/// The state of an owner, as far as this process can tell without waiting.
enum class OwnerState {
  alive,     ///< a process of this machine that runs
  dead,      ///< was a process of this machine
  elsewhere  ///< on another machine or in another container: its heartbeat decides
};
OwnerState state_of(const LockOwner& owner);

/// FOLDER/lock, held from construction to destruction. On one machine the file lock of the system decides; it
/// ends with its process, however that ends. Where the owner runs on another machine, on a file system whose
/// locks may not reach that far, its heartbeat decides: the owner writes an increasing number every few
/// seconds, and counts as dead when the number does not change for several heartbeats.
class RunLock {
 public:
  struct Timing {
    std::chrono::milliseconds heartbeat{3000};
    int missed = 4;  ///< heartbeats after which an owner elsewhere counts as dead
  };

  /// Takes over the lock of a dead owner. Calls `notice` when that takes a while. Throws Error(cannot_create)
  /// when another run holds the folder (naming it), or the file cannot be written.
  explicit RunLock(const std::filesystem::path& folder,
                   const std::function<void(const std::string& line)>& notice = {});
  RunLock(const std::filesystem::path& folder, const std::function<void(const std::string& line)>& notice,
          Timing timing);
  /// Removes the file, if it still belongs to this lock.
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

  /// Throws Error(cannot_create) when another run has taken the lock over, because this machine stood still
  /// for longer than the heartbeats allow. To be asked before something is written.
  void check() const;

 private:
  class Held;
  std::unique_ptr<Held> held_;
};

}  // namespace rondo
