#pragma once

#include <algorithm>
#include <atomic>
#include <coin/ClpEventHandler.hpp>
#include <cstdint>
#include <limits>

#include "rondo/core/stopwatch.hpp"
#include "rondo/model/solver.hpp"

namespace rondo {

/// COIN counts in int.
inline int as_int(std::int64_t count) {
  return static_cast<int>(std::min<std::int64_t>(count, std::numeric_limits<int>::max()));
}

/// Tells the callbacks of a backend whether to stop. Lives as long as one call of solve().
class SolverStop {
 public:
  /// `max_iterations` counts the simplex iterations of all copies of a model, such as those of CBC's
  /// heuristics; -1 = none.
  explicit SolverStop(const SolveLimits& limits, std::int64_t max_iterations = -1)
      : time_limit_s_(limits.time_limit_s), interrupt_(limits.interrupt), max_iterations_(max_iterations) {}

  double seconds() const { return clock_.seconds(); }
  bool must_stop() const {
    if ((interrupt_ != nullptr && interrupt_->load(std::memory_order_relaxed)) ||
        (time_limit_s_ >= 0 && seconds() >= time_limit_s_) ||
        (max_iterations_ >= 0 && iterations_ >= max_iterations_)) {
      fired_ = true;
    }
    return fired_;
  }
  void count_iteration() const { ++iterations_; }
  std::int64_t iterations() const { return iterations_; }
  /// Whether a callback has been told to stop.
  bool fired() const { return fired_; }

 private:
  Stopwatch clock_;
  double time_limit_s_;
  const std::atomic<bool>* interrupt_;
  std::int64_t max_iterations_;
  mutable std::int64_t iterations_ = 0;
  mutable std::atomic<bool> fired_{false};
};

/// Stops CLP, which calls it at every event, at least once an iteration.
class ClpStopHandler final : public ClpEventHandler {
 public:
  explicit ClpStopHandler(const SolverStop& rule) : rule_(rule) {}
  int event(Event which) override {
    if (which == endOfIteration) rule_.count_iteration();
    return rule_.must_stop() ? 0 : -1;
  }
  ClpEventHandler* clone() const override { return new ClpStopHandler(*this); }

 private:
  const SolverStop& rule_;
};

}  // namespace rondo
