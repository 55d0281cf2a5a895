#pragma once

#include <memory>

#include "rondo/core/sketch.hpp"
#include "rondo/engines/engine_row.hpp"

namespace rondo {

/// TACCL's three steps; with a sketch all that it says beside the links, which the topology has already.
EngineInfo route_engine(std::shared_ptr<const Sketch> sketch);

}  // namespace rondo
