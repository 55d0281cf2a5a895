#pragma once

#include <vector>

#include "rondo/core/certificate.hpp"
#include "rondo/engines/engine.hpp"

namespace rondo {

/// All bounds that could be derived, best first. Each value is what bound_of (core) gives for its
/// certificate.
struct Bounds {
  std::vector<LowerBound> all = {};
  const LowerBound& best() const { return all.front(); }
};

/// Latency bound of the farthest pair; cuts by max-flow for every demand (for AllGather the exact cut of
/// ForestColl, arXiv 2402.06787, section 3, by Newton steps on T; single GPUs and their complements and
/// chassis besides, since with latency another cut may give more); for pairwise demand the metric from the
/// duals of the steady-state flow.
Bounds lower_bounds(const Instance& instance, const Toolbox& tools);

}  // namespace rondo
