#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "rondo/core/certificate.hpp"
#include "rondo/core/collective.hpp"
#include "rondo/core/ids.hpp"
#include "rondo/core/topology.hpp"

namespace rondo {

/// What the far end of a send does with what it brings: copy replaces what is there, reduce adds to it.
enum class SendOp : std::uint8_t { copy = 0, reduce = 1 };

inline constexpr std::int32_t kNoTransfer = -1;

/// One chunk over one link (FORMATS.md 3, rule 1).
struct Send {
  ChunkId chunk;
  LinkId link;
  double start_us = 0;
  double end_us = 0;      ///< the link is free again
  double arrival_us = 0;  ///< the chunk is whole at the far end
  SendOp op = SendOp::copy;
  /// Sends of one number are one transfer: on all links that cut-through switches join, of all its chunks.
  std::int32_t transfer = kNoTransfer;
  double rate_GBps =
      std::numeric_limits<double>::quiet_NaN();  ///< of the transfer; absent: its slowest link's

  bool has_rate() const { return !std::isnan(rate_GBps); }
};

/// Sends, sorted by (start, link, chunk) once canonicalise() has run.
struct Schedule {
  std::vector<Send> sends = {};
  double finish_us = 0;  ///< as claimed; the replay checks it
};

/// The order of sends that FORMATS.md 3 asks for.
bool comes_before(const Send& a, const Send& b);
/// Sorts the sends so.
void canonicalise(Schedule& schedule);
/// Moves it to `by_us` later.
void delay(Send& send, double by_us);
/// All of it, and sorts the sends anew: starts that differ by little may become equal.
void delay(Schedule& schedule, double by_us);

/// A schedule with all that is needed to replay it and to check its bound: the content of `rondo-schedule`
/// files.
struct ProvenSchedule {
  Topology topology;
  Demand demand;
  Schedule schedule;
  std::optional<LowerBound> lower_bound = std::nullopt;
  std::string producer = {};
};

}  // namespace rondo
