#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

/// What /proc knows of the processes of a command.
namespace rondo::soak {

struct ProcessEntry {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t group = 0;
  char state = '?';  ///< R, S, D, Z, T: proc(5)
  std::string name = {};
};

/// `pid`, who is in its group, and all that these began, by pid; empty when it has ended.
std::vector<ProcessEntry> family_of(pid_t pid);

/// One process of the family after the other: its state, where it waits in the kernel, what it has open and,
/// where there is gdb, the calls of its threads. For a person to read.
std::string describe_processes(pid_t pid);

}  // namespace rondo::soak
