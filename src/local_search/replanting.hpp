#pragma once

#include <cstdint>
#include <optional>

#include "rondo/local_search/neighbours.hpp"

namespace rondo {

/// Whether switches join GPUs, so that many transfers share a link, which moves of single transfers find
/// hard.
bool passes_switches(const PlanSpace& space);

/// What a chain of replanting finds.
struct Replanting {
  std::optional<TransferPlan> plan = std::nullopt;  ///< nothing where no target was met
  bool took_long = false;                           ///< and ended early for that
};

/// A chain of replanting (replanting_chain.hpp), to a target before the plan's finish and on. It places about
/// `length` times as many transfers as the plan has. The same `seed` gives the same plan.
Replanting replanted(const SurveyedPlan& incumbent, const PlanSpace& space, double bound_us, double length,
                     std::uint64_t seed);

}  // namespace rondo
