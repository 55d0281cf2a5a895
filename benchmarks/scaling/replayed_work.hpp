#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

/// What --work-log has recorded of a run on one rank, replayed on more.
namespace rondo::benchmarks::scaling {

struct Network {
  double latency_us = 0;      ///< of a message between two ranks
  double bandwidth_GBps = 0;  ///< of a rank, in each direction
  int ranks_per_node = 1;     ///< that have memory in common
};

/// Times of the slowest rank, step by step; together they are the time of the run.
struct ReplayedRun {
  int ranks = 0;
  double own_s = 0;    ///< of work that every rank does
  double parts_s = 0;  ///< of dealt parts: of all of them, over the ranks
  double idle_s = 0;   ///< what the slowest rank has more than that
  double talk_s = 0;   ///< latency and bandwidth
  double bytes = 0;    ///< that a rank receives

  double seconds() const { return own_s + parts_s + idle_s + talk_s; }
  /// The greatest of them but parts_s, in words.
  std::string limit() const;
};

/// Every step waits for all ranks. Parts are dealt and drawn as by map_parts(); a gathering takes latencies
/// of log2 of the ranks and the bytes of all others, a broadcast or a reduction the same latencies and all
/// bytes.
ReplayedRun replayed(const nlohmann::ordered_json& log, int ranks, const Network& network);

}  // namespace rondo::benchmarks::scaling
