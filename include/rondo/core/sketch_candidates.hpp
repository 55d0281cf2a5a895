#pragma once

#include <string>
#include <vector>

#include "rondo/core/sketch.hpp"
#include "rondo/core/topology.hpp"

namespace rondo {

/// A sketch that was made from a topology.
struct SketchCandidate {
  std::string name;  ///< "2 NICs, own group"
  Sketch sketch;     ///< nodes and conn alone
};

/// Sketches for a fabric of several equal nodes (chassis), each different (TuCCL: binding, grouping,
/// transformation). Every GPU is bound to the NIC that is nearest to it, by latency; NICs of a node are
/// chosen greedily so that the bandwidth of what is chosen varies least, 1, 2, 4, ... of them, the same in
/// every node; the GPU next to each sends to its own group of GPUs of other nodes, to the next group, or to
/// all groups. Of one NIC also: one GPU sends, another one receives. Empty where there is one node, or nodes
/// differ.
std::vector<SketchCandidate> sketch_candidates(const Topology& topology);

}  // namespace rondo
