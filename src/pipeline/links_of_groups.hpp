#pragma once

#include <optional>

#include "rondo/pipeline/synthesize.hpp"

/// Problems on fabrics with links that are faster than what they share (rondo/core/group_limits.hpp).
namespace rondo {

/// With links no faster than that; nothing where none is.
std::optional<Problem> within_groups(const Problem& problem);
/// Collective. A result on slower links (within_groups(), even_links.hpp) with the rates of its transfers on
/// the fabric as it is, replayed there, and with a bound of that fabric, which its certificate proves.
SynthesisResult on_whole_links(const Problem& problem, SynthesisResult result, const RunContext& context);

}  // namespace rondo
