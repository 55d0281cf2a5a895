#pragma once

#include <atomic>
#include <string>

namespace rondo::cli {

/// From here on, and after the life of every InterruptGuard, SIGINT, SIGTERM and SIGUSR1 end the process on
/// the spot with exit code 75.
void exit_at_signals();

/// From here on those signals do nothing.
void ignore_signals();

/// While it lives, SIGINT, SIGTERM, SIGUSR1 and a deadline set a flag instead of ending the process; loops
/// and solvers read it. Files on the disk are whole at every instant, so two events may end the process at
/// once, with exit code 75: a second signal (of another kind, or half a second later, because batch systems
/// deliver one signal in several ways), and kGraceSeconds without a reading of the flag.
class InterruptGuard {
 public:
  static constexpr unsigned kGraceSeconds = 8;

  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  const std::atomic<bool>& flag() const;
  /// Sets the flag in so many seconds; at least 1.
  void stop_in(double seconds) const;

  /// What set the flag first: a signal's number, SIGALRM for the deadline, 0 while nothing did.
  static int cause();
  /// "signal TERM", "the time limit".
  static std::string describe(int cause);
};

}  // namespace rondo::cli
