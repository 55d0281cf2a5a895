#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "rondo/core/collective.hpp"
#include "rondo/msccl/executors.hpp"
#include "rondo/msccl/program.hpp"

/// Checks programs of any producer. Shares no code with the lowering.
namespace rondo::xmlcheck {

struct Finding {
  std::string where;  ///< "gpu 3 tb 2 step 7"
  std::string what;
};

struct CheckOptions {
  const msccl::Executor* executor = nullptr;  ///< whose spelling and caps to hold it against; none: no caps
  /// Sends that a connection holds before the receiver takes the first. Two is what the executors' chunk
  /// steps (half of NCCL's eight buffers) give under the protocol Simple.
  int fifo_depth = 2;
  const Demand* demand = nullptr;  ///< what a custom collective is to do; none: only that it runs
  std::size_t max_findings = 20;
};

struct CheckResult {
  std::vector<Finding> findings = {};  ///< of the first stage that found something, at most max_findings
  std::size_t num_findings = 0;        ///< all of that stage
  bool knows_result = true;            ///< false: a custom collective without a demand
  std::optional<int> root = {};        ///< of a rooted collective, as the program has it
  bool valid() const { return num_findings == 0; }
};

/// Checks, each stage only when those before found nothing:
/// 1. structure (peers, types, ranges, dependencies, buffer sizes) and the executor's caps;
/// 2. pairing: the n-th send of a connection meets the n-th receive, of the same count;
/// 3. that no step waits for itself: order in the threadblock, dependencies, messages, full connections;
/// 4. that of any two steps of a GPU that use the same memory, one of them writing, one happens before the
/// other;
/// 5. by execution on symbols that every output holds what the collective asks for, sums included.
/// 4 and 5 for every placement that the program declares: in place, input and output are one memory.
/// Throws Error(unavailable) for programs that are too large to be executed.
CheckResult check(const msccl::Program& program, const CheckOptions& options);

}  // namespace rondo::xmlcheck
