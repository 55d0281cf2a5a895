#pragma once

#include <span>

#include "rondo/core/collective.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/core/topology.hpp"

namespace rondo {

/// The same transfers over the same links, in the same order on every link and at every GPU, each as early as
/// that allows on `topology`, which may have other bandwidths, latencies and message costs than the one the
/// sends were made for: a transfer starts once all that had arrived where it starts, when it started, has
/// arrived. Rates asked for are kept as far as the links allow. `sends`: accepted by the replay on a topology
/// with the same nodes and links, of a demand with the same chunks. The result may be refused where a sum
/// that arrives earlier than before meets another that has yet to leave; the replay tells.
Schedule retimed(const Topology& topology, const Demand& demand, std::span<const Send> sends);

}  // namespace rondo
