#pragma once

#include <vector>

#include "rondo/core/collective.hpp"
#include "rondo/core/topology.hpp"

namespace rondo {

/// What one GPU sends under pairwise demand.
struct Origin {
  GpuId gpu;
  std::vector<double> wanted;  ///< bytes, per node
  double ready_us = 0;         ///< when it holds all of it
};

/// The GPUs that send, ascending. Throws Error(unavailable) for multicast demand, naming `model`.
std::vector<Origin> origins_of(const Topology& topology, const Demand& demand, const char* model);

/// Bytes of an average contribution.
double mean_contribution_bytes(const Demand& demand);

}  // namespace rondo
