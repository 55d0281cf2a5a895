#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "rondo/pipeline/synthesize.hpp"

namespace rondo {

/// A custom demand in the form in which it is solved.
struct CanonicalDemand {
  Demand demand;
  /// Per contribution its number in the custom demand; empty where some of that are one here.
  std::vector<std::size_t> asked_as = {};
};

/// Data of the same sources for the same destinations from the same time on is one contribution; what a named
/// collective asks for, all GPUs or a group taking part, is that collective. Nothing where that changes
/// nothing, and for demands that are not custom.
std::optional<CanonicalDemand> canonical(const Demand& custom);

/// The result for the custom demand, whose chunks it numbers where contributions are the same.
SynthesisResult as_asked(const Demand& custom, const CanonicalDemand& solved, SynthesisResult result);

}  // namespace rondo
