#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "rondo/mscclpp/plan.hpp"

/// Checks plans of any producer. Shares no code with what makes them.
namespace rondo::mscclpp {

struct Finding {
  std::string where;  ///< "gpu 3 tb 2 op 7"
  std::string what;
};

struct CheckResult {
  std::vector<Finding> findings = {};  ///< of the first stage that found something, at most max_findings
  std::size_t num_findings = 0;        ///< all of that stage
  bool knows_result = true;            ///< false: a collective that Rondo does not know
  std::optional<int> root = {};        ///< of a rooted collective, as the plan has it
  bool valid() const { return num_findings == 0; }
};

/// Checks, each stage only when those before found nothing:
/// 1. structure: all that unfold() refuses, and the executor's caps (`with_caps`);
/// 2. pairing: every signal of a channel has a wait at its other end, every release of a semaphore an
/// acquire, barriers the threadblocks that they name;
/// 3. that nothing waits for itself: order in the threads of a block, signals, semaphores, barriers, packets;
/// 4. that of two accesses of one place, one of them writing, one happens before the other; that a GPU's
/// memory is used by others after it has begun alone, and what comes from elsewhere, and what a port reads,
/// is done when the GPU ends; that packets are written once. Threads of a block are ordered by nop and
/// barrier alone, what a port does by its channel; relaxed signals order what is done, but let nobody read
/// what was written;
/// 5. by execution on fingerprints of 128 bits that every output holds what the collective asks for.
/// Pipelines are unfolded at two pieces a chunk or more. Throws Error(unavailable) for plans that are too
/// large.
CheckResult check(const Plan& plan, bool with_caps = true, std::size_t max_findings = 20);

}  // namespace rondo::mscclpp
