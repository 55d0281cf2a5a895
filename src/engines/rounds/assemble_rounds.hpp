#pragma once

#include <vector>

#include "rondo/core/collective.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/core/topology.hpp"

namespace rondo {

/// The schedule of what all rounds send, without sends that serve nothing. Throws Error(bad_data) where the
/// sends leave demand unmet.
Schedule assemble_rounds(const Topology& topology, const Demand& demand, const std::vector<Send>& sends);

}  // namespace rondo
