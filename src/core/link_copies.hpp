#pragma once

#include <vector>

#include "rondo/core/topology.hpp"

namespace rondo {

/// The groups of a fabric that is made from `topology`, whose links stand in it several times or not at all.
/// What stands several times has its bandwidth once; the groups of `topology` have all that takes their
/// links' place. `copies`: per link of `topology`, those in the new fabric.
std::vector<SharedBandwidth> shared_by_copies(const Topology& topology,
                                              const std::vector<std::vector<LinkId>>& copies);

}  // namespace rondo
