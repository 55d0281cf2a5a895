#pragma once

#include <vector>

#include "rondo/core/schedule.hpp"
#include "rondo/core/sketch.hpp"
#include "rondo/core/topology.hpp"

namespace rondo {

/// What a sketch leaves of a topology, and which link of that each of its links stands for.
struct SketchedFabric {
  Topology topology;
  std::vector<LinkId> originals;
};

/// restricted(), with the links' originals; throws as that does.
SketchedFabric sketched_fabric(const Topology& topology, const Sketch& sketch);

/// A schedule for what the sketch leaves, on the whole fabric: each transfer as early as the order allows
/// there, or, where sums do not meet then, at its own times. Replayed there; nothing where the replay refuses
/// both. `concurrency`: transfers at a time on a link of a GPU.
std::optional<Schedule> on_whole_fabric(const SketchedFabric& sketched, const Schedule& schedule,
                                        const Topology& whole, const Demand& demand, int concurrency);

}  // namespace rondo
