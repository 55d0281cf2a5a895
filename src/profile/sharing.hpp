#pragma once

#include <vector>

#include "rondo/profile/profile.hpp"

namespace rondo::profile {

/// Finds the links that share and what they share; needs the figures of the links.
std::vector<SharedGroup> find_groups(Wire& wire, const ProfileOptions& options,
                                     const std::vector<LinkFigures>& links);

/// What more than two share: everything out of a cluster, into it, or between clusters, where the groups
/// known so far do not explain how slow it is. One cluster: everything at once.
std::vector<SharedGroup> find_wide_groups(Wire& wire, const ProfileOptions& options,
                                          const std::vector<LinkFigures>& links,
                                          const std::vector<SharedGroup>& known,
                                          const std::vector<int>& cluster);

}  // namespace rondo::profile
