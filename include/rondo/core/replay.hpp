#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rondo/core/collective.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/core/topology.hpp"

namespace rondo {

/// Times compare within 1e-6 us + 1e-9 t (FORMATS.md 3).
bool times_equal(double a_us, double b_us);

struct ReplayResult {
  std::optional<std::string> violation = std::nullopt;  ///< the first one found: rule, chunk, link, times
  double finish_us = 0;                                 ///< rule 7; meaningful when there is no violation
  /// Per contribution, when the last of its destinations is served; likewise.
  std::vector<double> contribution_finish_us = {};
  bool valid() const { return !violation.has_value(); }
};

/// Executes the sends under the rules of FORMATS.md 3 and finds the finish time. Needs nothing but the
/// topology, the demand and the sends (in any order), and shares no code with the engines.
///
/// Where the rules leave something open, the schedule is valid if some reading is:
/// - Every send needs a chain of causes from a source of its chunk. What arrives serves what starts at the
///   same instant, but sends that rest only on each other are refused however short they are. A source holds
///   its chunk from its ready time, even if it receives the chunk again later.
/// - Several sends of a chunk without transfer numbers may enter a cut-through switch at one instant. Some
///   pairing with those that leave has to give each transfer enough onward sends and a link that is as slow
///   as its rate. Where more depends on the pairing - message costs, changing bandwidth, sums - they need
///   numbers.
/// - Of several arrivals of a chunk at a store-and-forward switch each needs an onward send; the pairing is
///   the one that leaves the fewest bytes waiting at every instant. Sums leave in the order in which they
///   came.
/// - Rates on a link, or in a group, above its bandwidth are a backlog, which drains when they are below it;
///   a backlog that the greatest bandwidth carries within the tolerance does not count.
/// - A transfer whose last byte passes just as the bandwidth changes ends then or, where that is later, when
///   the next byte could pass.
///
/// The violation is the first in time, whatever the order of `sends` (malformed sends - ids out of range,
/// times that are negative or not finite, an operation other than copy on data that are not summed, rates
/// without a number - come before all others, in the order given). About half a second for a million sends.
ReplayResult replay(const Topology& topology, const Demand& demand, std::span<const Send> sends);

}  // namespace rondo
