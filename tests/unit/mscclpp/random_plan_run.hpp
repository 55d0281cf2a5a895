#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rondo/core/random.hpp"
#include "rondo/mscclpp/plan.hpp"

namespace rondo::test {

/// Outputs of all GPUs, one after another, as they are when each GPU ends.
using PlanOutputs = std::vector<std::uint64_t>;

/// Runs a plan on numbers that stand for its chunks: whatever no nop, barrier, signal or semaphore orders
/// happens in an order that chance picks; ports move data when chance has it. Nothing when it cannot run to
/// its end, or is not a plan. What memory holds before it is written is chance as well.
std::optional<PlanOutputs> run_at_random(const mscclpp::Plan& plan, Random& random);

}  // namespace rondo::test
