#pragma once

#include <optional>
#include <span>
#include <string>

#include "rondo/core/collective.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/core/topology.hpp"

namespace rondo {

/// Times compare within 1e-6 us + 1e-9 t (FORMATS.md 3).
bool times_equal(double a_us, double b_us);

struct ReplayResult {
  std::optional<std::string> violation = std::nullopt;  ///< the first one found: rule, chunk, link, times
  double finish_us = 0;                                 ///< rule 7; meaningful when there is no violation
  bool valid() const { return !violation.has_value(); }
};

/// Executes the sends under the seven rules of FORMATS.md 3 and finds the finish time. Needs nothing but the
/// topology, the demand and the sends (in any order), and shares no code with the engines.
///
/// Where the rules leave something open, the schedule is valid if some reading is:
/// - Every send needs a chain of causes from its chunk's origin. What arrives serves what starts at the same
///   instant, but sends that rest only on each other are refused however short they are. An origin holds its
///   chunk from its ready time, even if it receives the chunk again later.
/// - Several sends of a chunk may enter a cut-through switch at one instant. Some pairing with those that
///   leave has to give each transfer enough onward sends and a link that is as slow as its rate.
/// - Of several arrivals of a chunk at a store-and-forward switch each needs an onward send; the pairing is
///   the one that leaves the fewest bytes waiting at every instant.
/// - Overlaps within the tolerance do not count; on a link they add up while sends follow without a pause.
///
/// The violation is the first in time, whatever the order of `sends` (malformed sends - ids out of range,
/// times that are negative or not finite, an operation other than copy - come before all others, in the order
/// given). About half a second for a million sends.
ReplayResult replay(const Topology& topology, const Demand& demand, std::span<const Send> sends);

}  // namespace rondo
