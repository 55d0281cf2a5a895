#pragma once

#include <string>
#include <vector>

#include "rondo/core/certificate.hpp"
#include "rondo/engines/engine.hpp"

namespace rondo {

/// All bounds that could be derived, best first. Each value is what sound_bound_of (core) gives for its
/// certificate.
struct Bounds {
  std::vector<LowerBound> all = {};
  std::vector<std::string> remarks = {};  ///< sentences a user should read: what was left out and why
  const LowerBound& best() const { return all.front(); }
};

/// Latency bound of the farthest pair that exchanges data; cuts by max-flow for every demand (for AllGather
/// the exact cut of ForestColl, arXiv 2402.06787, section 3, by Newton steps on T; single GPUs and chassis
/// and their complements besides, since with latency another cut may give more); for pairwise demand the
/// metric from the duals of the steady-state flow, up to kMaxMetricColumns columns.
Bounds lower_bounds(const Instance& instance, const Toolbox& tools);

/// Origins x links beyond which lower_bounds does not solve the steady-state flow.
inline constexpr std::size_t kMaxMetricColumns = 100'000;

}  // namespace rondo
