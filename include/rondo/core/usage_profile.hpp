#pragma once

#include <vector>

namespace rondo {

/// How much of something is used at every time: a step function.
class UsageProfile {
 public:
  explicit UsageProfile(double capacity) : capacity_(capacity) {}

  /// The earliest start >= `start_us` of a use of `amount` for `occupied_us`; infinity where the capacity is
  /// below the amount. Nothing starts before what forget() has dropped.
  double room_from(double start_us, double occupied_us, double amount) const;
  /// The greatest use within [start_us, end_us).
  double most_used(double start_us, double end_us) const;
  void add(double start_us, double end_us, double amount);
  /// Drops what ends before.
  void forget(double before_us);

 private:
  struct Step {
    double from_us;
    double used;  ///< until the next step; 0 from the last one on
  };
  /// The position of the step that begins at the time; makes one where none is near.
  std::size_t step_at(double t_us);
  void merge(std::size_t step);

  double capacity_;
  double forgotten_us_ = 0;
  std::vector<Step> steps_;
};

}  // namespace rondo
