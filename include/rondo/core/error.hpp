#pragma once

#include <stdexcept>
#include <string>

namespace rondo {

/// Exit codes after sysexits.h. A resumable stop has a code of its own, so that a batch script can requeue on
/// it.
enum class ExitCode : int {
  ok = 0,
  usage = 64,          ///< the command line
  bad_data = 65,       ///< bad or corrupted input, wrong problem
  no_input = 66,       ///< no such input
  unavailable = 69,    ///< infeasible, unsupported, or beyond a stated cap
  internal = 70,       ///< a fault of ours
  cannot_create = 73,  ///< cannot write: disk full, read-only
  io = 74,             ///< other I/O
  stopped = 75,        ///< stopped with a whole state; resume it
};

/// What the user can do something about. The message names the value, why it is wrong and what would be
/// right.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

}  // namespace rondo
