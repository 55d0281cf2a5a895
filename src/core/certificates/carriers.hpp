#pragma once

#include <vector>

#include "rondo/core/topology.hpp"

namespace rondo {

/// What carries bytes (times a length where a link has one), each from a time on.
class Carriers {
 public:
  /// `link` counts from `from_us` on; what happens on it at x is counted at x + shift_us. `length` per byte.
  void add(const Link& link, double from_us, double shift_us = 0, double length = 1);

  bool empty() const { return carriers_.empty(); }
  /// The T up to which `amount` > 0 is carried: the sum of what each one carries from its time to T.
  /// Infinity where that is never.
  double time_for(double amount) const;
  /// The same where every carrier moves pieces of `piece` bytes, each one whole, after one another. With
  /// bandwidths that change the same as time_for().
  double time_for_whole(double amount, double piece) const;

 private:
  struct Carrier {
    double from_us;
    double rate;  ///< a microsecond, at from_us
  };
  std::vector<Carrier> carriers_;
  std::vector<Carrier> changes_;  ///< by how much, of bandwidths that change later
};

}  // namespace rondo
