#pragma once

#include <algorithm>
#include <chrono>
#include <limits>
#include <string>

#include "rondo/model/solver.hpp"

namespace rondo {

/// When a piece of work has to end: at a time, or once an interrupt has come. Copies end at the same time.
class Deadline {
 public:
  /// Never.
  Deadline() = default;
  /// The limits' seconds count from now on.
  explicit Deadline(const SolveLimits& limits) : interrupt_(limits.interrupt) {
    if (limits.time_limit_s >= 0) end_ = Clock::now() + seconds(std::min(limits.time_limit_s, kMostSeconds));
  }

  /// Takes tens of nanoseconds.
  bool is_over() const { return is_interrupted() || is_late(); }
  /// As EngineResult::limits_hit names it; empty while it is not over.
  std::string ended_by() const { return is_interrupted() ? "interrupted" : is_late() ? "time" : ""; }
  /// Infinite where there is no limit.
  double seconds_left() const {
    if (end_ == Clock::time_point::max()) return std::numeric_limits<double>::infinity();
    return std::max(0.0, std::chrono::duration<double>(end_ - Clock::now()).count());
  }
  /// `limits` with a share of the seconds that are left.
  SolveLimits left_of(SolveLimits limits, double share = 1) const {
    limits.interrupt = interrupt_;
    limits.time_limit_s = end_ == Clock::time_point::max() ? -1 : share * seconds_left();
    return limits;
  }
  /// Ends after a share of the seconds that are left, so that there is time for what comes next.
  Deadline after(double share) const { return Deadline(left_of({}, share)); }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr double kMostSeconds = 1e9;  // decades
  static Clock::duration seconds(double s) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(s));
  }
  bool is_interrupted() const { return interrupt_ != nullptr && interrupt_->load(std::memory_order_relaxed); }
  bool is_late() const { return end_ != Clock::time_point::max() && Clock::now() >= end_; }

  const std::atomic<bool>* interrupt_ = nullptr;
  Clock::time_point end_ = Clock::time_point::max();
};

}  // namespace rondo
