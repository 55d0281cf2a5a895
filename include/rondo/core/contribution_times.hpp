#pragma once

#include <vector>

#include "rondo/core/collective.hpp"
#include "rondo/core/ids.hpp"
#include "rondo/core/topology.hpp"

namespace rondo {

/// A GPU that has its contribution to sums from a time on.
struct TimedSource {
  GpuId gpu;
  double ready_us = 0;
};

/// The sums of `demand` that `destination` wants and of which each source has its own contribution at first,
/// and nobody another.
std::vector<const Contribution*> plain_sums_for(const Demand& demand, GpuId destination);

/// The members of `gpus` that have a part in some of the sums, with the least of their ready times.
std::vector<TimedSource> timed_sources(const std::vector<const Contribution*>& sums,
                                       const std::vector<GpuId>& gpus);

/// Per node, ascending, us, rounded down: when a byte of a sum can be there at the earliest with the
/// contributions of one, of two, ... of `sources` (FORMATS.md 3, time cuts that count contributions);
/// infinity where it never can. GPUs and switches that add have what can reach them by then; other switches
/// pass on what one transfer brings.
std::vector<std::vector<double>> contribution_times(const Topology& topology,
                                                    const std::vector<TimedSource>& sources);

}  // namespace rondo
