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
/// fabric, the demand and the sends (in any order), and shares no code with the engines.
ReplayResult replay(const Topology& topology, const Demand& demand, std::span<const Send> sends);

}  // namespace rondo
