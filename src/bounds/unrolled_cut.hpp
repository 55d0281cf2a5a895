#pragma once

#include <vector>

#include "timed_network.hpp"

namespace rondo {

/// The minimum cut of the network unrolled over time, between the supplies and `target` before `us`.
struct UnrolledCut {
  double share = 0;                      ///< of the supplies' bytes, what reaches `target` in time
  std::vector<const Supply*> separated;  ///< whose bytes are in the cut
  std::vector<double> alpha_us;
};

/// Layers stand at whole multiples of a step from 0 and back from `us`, as far as latencies matter, and far
/// apart between. Delays are rounded down to whole steps, which makes the cut no less than what a time cut
/// proves. The step divides all delays where few enough layers allow that. `work` grows by the arcs.
UnrolledCut unrolled_cut(const TimedNetwork& network, const std::vector<Supply>& supplies, NodeId target,
                         double us, std::size_t& work);

}  // namespace rondo
