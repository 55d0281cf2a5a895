#include "known_points.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

namespace rondo::catalogue {

double KnownPoints::least_us(double size_bytes) const {
  if (points_.empty()) return 0;
  double least_us = 0;
  const auto extend = [&](const auto& a, const auto& b) {
    const double slope = (b->second - a->second) / (b->first - a->first);
    least_us = std::max(least_us, a->second + slope * (size_bytes - a->first));
  };
  // The two nearest on each side say most.
  const auto next = points_.lower_bound(size_bytes);
  if (next != points_.begin()) {
    const auto before = std::prev(next);
    least_us = before->second;
    if (before != points_.begin()) extend(std::prev(before), before);
  }
  if (next != points_.end()) {
    if (next->first == size_bytes) return next->second;
    if (std::next(next) != points_.end()) extend(next, std::next(next));
  }
  return least_us;
}

double KnownPoints::most_us(double size_bytes) const {
  const auto next = points_.lower_bound(size_bytes);
  if (next == points_.end()) return std::numeric_limits<double>::infinity();
  if (next->first == size_bytes) return next->second;
  if (next == points_.begin()) return std::numeric_limits<double>::infinity();
  const auto before = std::prev(next);
  return std::lerp(before->second, next->second,
                   (size_bytes - before->first) / (next->first - before->first));
}

}  // namespace rondo::catalogue
