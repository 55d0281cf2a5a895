#include "rondo/core/rate_divisors.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace rondo {
namespace {

constexpr double kRounding = 1e-9;
/// Of a link's bandwidth: less is not worth a divisor.
constexpr double kWorthwhile = 0.01;

}  // namespace

std::vector<int> rate_divisors(std::span<const Hop> hops, int most) {
  std::set<double> shares;
  for (const Hop& hop : hops) {
    for (const HopLink& part : hop.links) shares.insert(std::round(part.share / kRounding) * kRounding);
  }
  std::vector<int> divisors;
  double least = 2;
  for (int divisor = 1; divisor <= most; ++divisor) {
    double unused = 0;
    for (const double share : shares)
      unused = std::max(unused, 1 - std::floor(divisor / share + 2 * kRounding * divisor) * share / divisor);
    if (unused > least - kWorthwhile) continue;
    divisors.push_back(divisor);
    least = unused;
  }
  return divisors;
}

}  // namespace rondo
