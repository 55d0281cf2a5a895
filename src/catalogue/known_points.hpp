#pragma once

#include <map>

namespace rondo::catalogue {

/// What one schedule takes at some sizes. The time of transfers in one order is about convex in the size:
/// where links serve what they serve in one order, it is the longest of sums of times that are linear in the
/// size.
class KnownPoints {
 public:
  void add(double size_bytes, double finish_us) { points_.emplace(size_bytes, finish_us); }

  bool is_at(double size_bytes) const { return points_.contains(size_bytes); }
  /// By this it takes no less: not less than at smaller sizes, nor than a line through two of its points says
  /// outside them.
  double least_us(double size_bytes) const;
  /// By this it takes no more: than a line between the points on both sides says; infinity without these.
  double most_us(double size_bytes) const;

 private:
  std::map<double, double> points_;
};

}  // namespace rondo::catalogue
