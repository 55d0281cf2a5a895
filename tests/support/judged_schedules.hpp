#pragma once

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "rondo/core/replay.hpp"
#include "rondo/io/json_files.hpp"

namespace rondo {

/// The replay's verdict on the sends. Where the environment has RONDO_JUDGED, every RONDO_JUDGED_EVERY-th one
/// goes to that file with its verdict, a line of JSON each, for tests/conformance/judge_alike.py.
inline ReplayResult judged(const Topology& topology, const Demand& demand, const std::vector<Send>& sends) {
  ReplayResult result = replay(topology, demand, sends);
  static const char* const path = std::getenv("RONDO_JUDGED");
  static int count = 0;
  if (path == nullptr || count++ % std::max(1, std::atoi(std::getenv("RONDO_JUDGED_EVERY"))) != 0)
    return result;
  static std::ofstream file(path, std::ios::app);
  Schedule schedule{sends, result.valid() ? result.finish_us : 1};
  canonicalise(schedule);
  const Json line{{"valid", result.valid()},
                  {"violation", result.violation.value_or("")},
                  {"schedule", schedule_to_json({topology, demand, std::move(schedule)})}};
  file << line.dump() << '\n';
  return result;
}

}  // namespace rondo
