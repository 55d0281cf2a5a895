#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rondo/core/schedule.hpp"
#include "rondo/core/sketched_fabric.hpp"
#include "rondo/pipeline/options.hpp"

/// Cells over the links of a sketch alone, where a search among fewer paths may end earlier. On this rank
/// alone.
namespace rondo::catalogue {

struct NamedFabric {
  std::string name;  ///< of the sketch, and who sends to whom between nodes: "1 NIC, own group: 0>0"
  std::shared_ptr<const Topology> topology;
  std::vector<LinkId> originals;
};

/// Of sketch_candidates(), those that leave fewer pairs of GPUs than there are.
std::vector<NamedFabric> sketched_fabrics(const Topology& topology);

/// Nothing where the sketch leaves no way for some of the data.
std::optional<double> bound_over(const NamedFabric& sketch, const Demand& demand);

struct SketchedSolution {
  ProvenSchedule proven;  ///< on the whole fabric, replayed there; without a bound
  std::string engine;
  std::uint64_t seed = 0;
};
/// Nothing where no engine finds a schedule, it does not work on the whole fabric, or an interrupt came.
std::optional<SketchedSolution> solve_over(const NamedFabric& sketch, const Topology& whole,
                                           const Demand& demand, const SolveOptions& options,
                                           const std::atomic<bool>* interrupt);

}  // namespace rondo::catalogue
