#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "rondo/parallel/communicator.hpp"

namespace rondo {

/// What a child may use up.
struct ChildLimits {
  unsigned cpu_s = 10;
  std::uint64_t memory_bytes = std::uint64_t{1} << 29;  ///< of address space, beyond what the parent has
};

/// Runs `work` in a child process and returns what it gives. What the child throws as Error is thrown here;
/// where it crashes or needs more than `limits`, that is Error(bad_data) "SUBJECT: ...": the input is to
/// blame. For libraries that do not survive every input. `work` must not call MPI.
Bytes in_child_process(const std::string& subject, const ChildLimits& limits,
                       const std::function<Bytes()>& work);

}  // namespace rondo
