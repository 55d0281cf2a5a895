#include "holder_distances.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "list_rules.hpp"
#include "rondo/core/error.hpp"

namespace rondo {

HolderDistances::HolderDistances(const FreeGroup& group, const OrbitHops& hops, double bytes,
                                 std::size_t num_chunks, bool all_count)
    : group_(group),
      num_orbits_(group.num_gpu_orbits()),
      relay_us_(hops.relay_us(bytes)),
      all_count_(all_count),
      nearest_other_us_(num_orbits_, all_count_ ? 0 : std::numeric_limits<float>::infinity()) {
  for (const float d : relay_us_) {
    if (!std::isfinite(d))
      throw Error(ExitCode::unavailable,
                  "the hops that symmetry leaves do not reach every GPU; use --engine list");
    diameter_us_ = std::max(diameter_us_, d);
  }
  if (!all_count_) find_neighbours(hops, bytes);
  const auto has_some = [](const auto& list) { return !list.empty(); };
  if (all_count_ || std::ranges::any_of(neighbours_, has_some))
    near_us_.assign(num_chunks * num_orbits_, std::numeric_limits<float>::infinity());
}

void HolderDistances::find_neighbours(const OrbitHops& hops, double bytes) {
  std::vector<double> longest_us(num_orbits_, 0);  // hop into an orbit
  for (const OrbitHop& hop : hops.hops()) {
    double& longest = longest_us[static_cast<std::size_t>(hop.to)];
    longest = std::max(longest, hop.hop.duration_us(bytes));
  }
  neighbours_.resize(num_orbits_);
  for (std::size_t a = 0; a < num_orbits_; ++a) {
    for (std::size_t e = 0; e < group_.order(); ++e) {
      for (std::size_t b = 0; b < num_orbits_; ++b) {
        const float distance = relay_us(a, e, b);
        const bool is_holder = e == 0 && a == b;
        if (is_holder || distance >= kNearer * longest_us[b]) continue;
        neighbours_[a].push_back({static_cast<int>(e), static_cast<int>(b), distance});
        nearest_other_us_[b] = std::min(nearest_other_us_[b], distance);
      }
    }
  }
}

void HolderDistances::add_holder(int orbit, std::uint32_t chunk) {
  const std::size_t n = group_.order();
  const std::size_t row = n * num_orbits_;
  const auto origin = static_cast<int>(chunk % n);
  float* near = near_us_.data() + chunk / n * row;
  if (!all_count_) {
    const std::uint16_t* seen_by_origin = group_.products_of(group_.inverse(origin));
    for (const Neighbour& neighbour : neighbours_[static_cast<std::size_t>(orbit)]) {
      const std::size_t g = seen_by_origin[neighbour.element];
      float& distance = near[g * num_orbits_ + static_cast<std::size_t>(neighbour.orbit)];
      distance = std::min(distance, neighbour.distance_us);
    }
    return;
  }
  const float* from = relay_us_.data() + static_cast<std::size_t>(orbit) * row;
  const std::uint16_t* element = group_.products_of(origin);  // of what the origin sees as g
  for (std::size_t g = 0; g < n; ++g) {
    const float* from_there = from + element[g] * num_orbits_;
    float* near_there = near + g * num_orbits_;
    for (std::size_t b = 0; b < num_orbits_; ++b) near_there[b] = std::min(near_there[b], from_there[b]);
  }
}

float HolderDistances::farthest_us(std::size_t q) const {
  const auto row = static_cast<std::ptrdiff_t>(group_.order() * num_orbits_);
  const auto near = near_us_.begin() + static_cast<std::ptrdiff_t>(q) * row;
  return *std::max_element(near, near + row);
}

}  // namespace rondo
