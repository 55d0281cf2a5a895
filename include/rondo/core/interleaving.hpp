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

/// The same transfers in the order of `keys` backwards in time, the greatest first, then forwards, first what
/// has the longest way to the end, and so on: at least one and at most `passes` times, until that ends no
/// earlier (forward-backward improvement: Li and Willis, 1992). The best of all. No bandwidth changes over
/// time.
Schedule interleaved_there_and_back(const TimedSends& before, const Topology& topology, const Demand& demand,
                                    std::span<const double> keys, int passes,
                                    int concurrency = kAnyConcurrency);

}  // namespace rondo
