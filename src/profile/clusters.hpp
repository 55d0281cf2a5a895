#pragma once

#include <vector>

#include "rondo/profile/profile.hpp"

namespace rondo::profile {

/// The cluster of every rank. Ranks are of one cluster where links up to a gap between bandwidths, or between
/// latencies, join them: the first gap that leaves no rank alone and not all together. Without one, all are
/// of cluster 0.
std::vector<int> find_clusters(int ranks, const std::vector<LinkFigures>& links);

}  // namespace rondo::profile
