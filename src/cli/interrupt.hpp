#pragma once

#include <atomic>

namespace rondo::cli {

/// While it lives, SIGINT, SIGTERM and SIGUSR1 set the flag instead of ending the process. A second signal of
/// the same kind ends it: somebody is in a hurry.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  const std::atomic<bool>& flag() const;
};

}  // namespace rondo::cli
