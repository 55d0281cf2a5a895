#pragma once

#include <optional>
#include <vector>

#include "rondo/bounds/cuts.hpp"
#include "rondo/core/certificate.hpp"

namespace rondo {

/// The best bound by knowledge, where some link's messages cost, that is more than `least_us`; nothing where
/// none is found. Each destination of an orbit is like the others. For each, and for the data of all sources,
/// of those inside `cuts` and of those farther than some distance, the GPUs' knowledge is followed until the
/// destination may have all; sets are what lies around it and beyond the cuts. For demand that can be
/// transposed sources are tried like destinations. `backwards`: the problem is a transposed one, and what is
/// found holds of it both forwards and with time counted back. Fabrics too large for it are left out by a
/// count; past `deadline` what has been found by then.
std::optional<LowerBound> find_knowledge(const Topology& topology, const Demand& demand,
                                         const Symmetry& symmetry, const std::vector<NodeSet>& cuts,
                                         double least_us, bool backwards = false,
                                         const Deadline& deadline = {});

}  // namespace rondo
