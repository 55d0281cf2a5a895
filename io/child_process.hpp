#pragma once

#include <functional>
#include <string>

#include "rondo/parallel/communicator.hpp"

namespace rondo {

/// Runs `work` in a child process and returns what it gives. What the child throws as Error is thrown here;
/// where it crashes, or works on for more than `max_cpu_s` seconds, that is Error(bad_data) "SUBJECT: ...":
/// the input is to blame. For libraries that do not survive every input. `work` must not call MPI.
Bytes in_child_process(const std::string& subject, unsigned max_cpu_s, const std::function<Bytes()>& work);

}  // namespace rondo
