#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rondo/core/random.hpp"
#include "rondo/msccl/program.hpp"

namespace rondo::test {

/// Outputs of all GPUs, one after another.
using Outputs = std::vector<std::uint64_t>;

/// Runs a program out of place on numbers that stand for its data, steps whole and in an order that chance
/// picks among those that are ready; connections hold any number of sends. Nothing when it cannot run to its
/// end: it waits forever, or leaves its buffers. What memory holds before it is written is chance as well.
std::optional<Outputs> run_at_random(const msccl::Program& program, Random& random);

}  // namespace rondo::test
