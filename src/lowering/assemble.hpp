#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rondo/msccl/program.hpp"
#include "steps.hpp"
#include "switch_use.hpp"

namespace rondo::lowering {

/// The GPUs of the program: one copy of the steps an instance, nops where a step has several waits, the
/// GPUs' own parts copied in threadblocks of their own. Threadblocks that others wait for come first.
/// `multicasts` gets the sends of batches that leave together.
std::vector<msccl::Gpu> assemble(const StepGraph& graph, const std::vector<Batch>& batches, const Plan& plan,
                                 const Layout& layout, int instances, int max_count,
                                 MulticastSteps& multicasts);

/// The cap that more channels can meet.
inline constexpr const char* kStepsCap = "steps of a threadblock";

/// A figure beyond the cap of an executor.
struct Excess {
  std::string cap;    ///< what is limited
  std::string where;  ///< "gpu 3 tb 2"
  long figure = 0;
  long allowed = 0;
  std::string remedy;
};

/// The first cap of `executor` that the program does not keep; those on steps come last.
std::optional<Excess> beyond_caps(const msccl::Program& program, const msccl::Executor& executor,
                                  int max_steps);

}  // namespace rondo::lowering
