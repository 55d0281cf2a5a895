#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

/// What /proc knows of the processes of this machine.
namespace rondo::soak {

struct ProcessEntry {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t group = 0;
  char state = '?';  ///< R, S, D, Z, T: proc(5)
  std::string name = {};
};

/// All processes of now, by pid.
std::vector<ProcessEntry> process_table();

/// One process after the other that `pid` began or that is in its group, itself first: its state, where it
/// waits in the kernel, what it has open and, where there is gdb, the calls of its threads. For a person to
/// read.
std::string describe_processes(pid_t pid);

}  // namespace rondo::soak
