#pragma once

#include <cstdint>
#include <string>

#include "rondo/catalogue/catalogue.hpp"
#include "rondo/pipeline/run_context.hpp"

namespace rondo::catalogue {

/// How near the bins are to the best that the catalogue has, at sizes that it was not built for.
struct Sampled {
  std::size_t sizes = 0;
  std::size_t best = 0;  ///< sizes at which the bin's schedule is the best of the series
  double mean_loss = 0;  ///< finish of the bin's schedule over that of the best, minus 1
  double largest_loss = 0;
  double largest_loss_bytes = 0;
  std::string largest_loss_series = {};
  double lookup_us = 0;     ///< mean of a look-up, wall
  std::size_t replays = 0;  ///< that decided, or are done in any case
  /// Of these, those that took less or more than the times at other sizes said; such a schedule is replayed
  /// at every size from then on.
  std::size_t surprises = 0;
};

/// Collective. Looks `sizes` random sizes up, dealt evenly over the series of the catalogue, each between its
/// least and its largest cell (by the logarithm), and compares the schedule that is found with all of the
/// series' bins. The time of transfers in one order is convex in the size: where its times at other sizes,
/// all replayed, leave open which is earlier, schedules are replayed, and at every 32nd size in any case.
Sampled sample(const Folder& folder, std::size_t sizes, std::uint64_t seed, const RunContext& context);

}  // namespace rondo::catalogue
