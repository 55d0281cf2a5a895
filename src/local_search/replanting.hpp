#pragma once

#include <cstdint>
#include <optional>

#include "rondo/local_search/neighbours.hpp"

namespace rondo {

/// Whether switches join GPUs, so that many transfers share a link, which moves of single transfers find
/// hard.
bool passes_switches(const PlanSpace& space);

/// Ruin and recreate (Schrimpf, Schneider, Stamm-Wilbrandt and Dueck, Journal of Computational Physics 159,
/// 2000) with trees: a chain of steps, each of which takes out the trees of a few chunks, late ones among
/// them, and grows each anew, the cheapest that ends by a target before the plan's finish: links cost the
/// more the fuller they are, of the time that leaves enough for their hops, beside the fullest. A step is
/// kept where the chunks are less late in sum; the target moves on when none is. A chain places about
/// `length` times as many transfers as the plan has, and ends where the deadline of the space is over.
/// Nothing where it meets no target. The same `seed` gives the same plan.
std::optional<TransferPlan> replanted(const SurveyedPlan& incumbent, const PlanSpace& space, double bound_us,
                                      double length, std::uint64_t seed);

}  // namespace rondo
