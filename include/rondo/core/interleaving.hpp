#pragma once

#include <span>

#include "rondo/core/retiming.hpp"

namespace rondo {

/// The same transfers over the same paths on `topology`, in an order of their own on every link: whenever a
/// link is free, what is there to be sent and has the least key starts. `keys`: one a send, of a transfer
/// that of its first one counts. A transfer waits for all that it rested on before; of sums no arrival comes
/// before what left earlier without it. `before.sends` may be schedules of several demands beside each other,
/// of which each alone is one that the replay accepts; `demand` has the chunks of all. As with retimed() the
/// replay has the last word on sums.
Schedule interleaved(const TimedSends& before, const Topology& topology, const Demand& demand,
                     std::span<const double> keys, int concurrency = kAnyConcurrency);

/// The same, then up to `passes` times backwards in time, what ended last first, and forwards again, what has
/// the longest way to the end first (forward-backward improvement: Li and Willis, 1992); the best of all.
/// Where bandwidth changes over time, as interleaved().
Schedule interleaved_there_and_back(const TimedSends& before, const Topology& topology, const Demand& demand,
                                    std::span<const double> keys, int passes,
                                    int concurrency = kAnyConcurrency);

}  // namespace rondo
