#pragma once

#include "rondo/core/schedule.hpp"

namespace rondo {

/// Replays the schedule under the rules of FORMATS.md 3, checks that its demand is that of its
/// collective and derives its bound again from the certificate. Trusts nothing that the schedule claims.
/// Throws Error(bad_data) naming the first thing that does not hold.
void verify(const ProvenSchedule& proven);

}  // namespace rondo
