#pragma once

#include <functional>
#include <optional>

#include "rondo/pipeline/synthesize.hpp"

/// Problems on fabrics with links whose bandwidth does not divide that of others (rondo/core/even_links.hpp).
namespace rondo {

/// The problem on the fabric with even links, where engines may choose and some link is slower there.
std::optional<Problem> on_even_links(const Problem& problem);

/// Collective. What `solve` makes of the problem on even links, with the rates that its transfers have on the
/// fabric as it is, and, where that is not near the bound, of the problem itself: the earlier of the two.
/// Even links are left out where their bound is later: then what they give up is missing. A time limit is
/// shared.
SynthesisResult solve_on_even_links(const Problem& problem, const Problem& even, const RunContext& context,
                                    const std::function<SynthesisResult(const Problem&)>& solve);

}  // namespace rondo
