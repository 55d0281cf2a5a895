#pragma once

#include <string>
#include <vector>

#include "rondo/parallel/communicator.hpp"

namespace rondo {

/// For the beginning of main(), before MPI starts. From here on a signal that asks a run to stop ends `rondo
/// solve` and `rondo resume` with Error(stopped)'s exit code even where there is nothing yet to be kept, so
/// that a batch system starts them again.
void stop_at_signals(const std::vector<std::string>& arguments);

/// Collective. Runs `rondo ARGUMENTS...` and returns the exit code (see ExitCode), the same on every rank.
/// The root alone prints: results to standard output, progress and errors to standard error. Throws nothing
/// that a user could mend; what it throws is a fault of ours and may have struck one rank alone.
int run_command_line(const std::vector<std::string>& arguments, const Communicator& communicator);

}  // namespace rondo
