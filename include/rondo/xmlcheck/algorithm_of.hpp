#pragma once

#include "rondo/core/algorithm.hpp"
#include "rondo/msccl/program.hpp"

namespace rondo::xmlcheck {

/// What a program's messages move, in steps that keep its order; what GPUs copy and add up in their own
/// memory takes no time. Settled. Throws Error(bad_data), with the findings of check(), for a program that is
/// wrong; Error(unavailable) for coll custom, which does not say what it moves.
Algorithm algorithm_of(const msccl::Program& program, double size_bytes);

}  // namespace rondo::xmlcheck
