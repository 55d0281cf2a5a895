#pragma once

#include <string>

#include "rondo/engines/synchronous.hpp"

namespace rondo::benchmarks::sccl {

/// The instance in SMT-LIB as SCCL encodes it (PPoPP 2021, section 3.4, constraints C1 to C6): an integer
/// `time` a chunk and GPU, a Boolean `snd` a chunk and arc, an integer a step for its rounds. As in its
/// public code a bound is one pseudo-Boolean constraint for each number of rounds that the step may have.
std::string paper_formula(const StepInstance& instance);

}  // namespace rondo::benchmarks::sccl
