#include <exception>
#include <iostream>

#include "rondo/cli/command_line.hpp"
#include "rondo/core/error.hpp"
#include "rondo/parallel/communicator.hpp"

int main(int argc, char** argv) {
  rondo::stop_at_signals({argv + 1, argv + argc});
  rondo::MpiSession session(&argc, &argv);
  const auto communicator = rondo::make_world_communicator();
  try {
    return rondo::run_command_line({argv + 1, argv + argc}, *communicator);
  } catch (const std::exception& exception) {
    std::cerr << "rondo: a fault of Rondo on rank " << communicator->rank() << ", sorry: " << exception.what()
              << "; please report it with the command line and the input" << std::endl;
  }
  const int code = static_cast<int>(rondo::ExitCode::internal);
  if (communicator->size() > 1) rondo::MpiSession::abort(code);  // the others may wait for this rank
  return code;
}
