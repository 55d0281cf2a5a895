#pragma once

#include <atomic>
#include <string>

namespace rondo::tuning {

struct ShellOutcome {
  std::string output;   ///< standard output; its last MiB
  std::string failure;  ///< how it ended, if not well
};

/// Runs `command` by /bin/sh. After `timeout_s` all that it started and that stayed in its process group is
/// killed. Throws Error(stopped) once `interrupt` is set, Error(io) where no process can be started.
ShellOutcome run_shell(const std::string& command, double timeout_s, const std::atomic<bool>* interrupt);

}  // namespace rondo::tuning
