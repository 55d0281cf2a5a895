#pragma once

#include <string>

#include "rondo/core/stopwatch.hpp"
#include "rondo/model/solver.hpp"

namespace rondo {

/// Whether the caller's time limit is over or its interrupt has come, for engines that go on event by event.
class Deadline {
 public:
  explicit Deadline(const SolveLimits& limits) : limits_(limits) {}

  /// Cheap enough for every event: looks at the clock now and then.
  bool is_over() {
    if (limits_.interrupt != nullptr && limits_.interrupt->load()) ended_by_ = "interrupted";
    const bool look = limits_.time_limit_s >= 0 && ++calls_ % kCallsPerLook == 0;
    if (look && clock_.seconds() >= limits_.time_limit_s) ended_by_ = "time";
    return !ended_by_.empty();
  }
  /// As EngineResult::limits_hit names it; empty while there is patience.
  const std::string& ended_by() const { return ended_by_; }

 private:
  static constexpr unsigned kCallsPerLook = 16;
  SolveLimits limits_;
  Stopwatch clock_;
  unsigned calls_ = 0;
  std::string ended_by_ = {};
};

}  // namespace rondo
