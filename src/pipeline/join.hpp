#pragma once

#include <vector>

#include "explore.hpp"

namespace rondo {

/// Of a time limit, until when local search may go on where joining follows.
inline constexpr double kTimeBeforeJoining = 0.7;

/// Collective. Of what the portfolio has tried in one chunk a contribution, the best schedules: beside the
/// best of all, starts for join(). None where that does not apply.
std::vector<Incumbent> starts_of_joining(const Problem& problem, EngineRunner& runner,
                                         const SearchState& state);

/// Collective. Lets transfers go together where messages cost (local_search/joining.hpp), of the best
/// schedule and of `others`; what ends earlier than all of them becomes the best.
void join(const Problem& problem, Incumbent& best, std::vector<Incumbent> others, StopRule& rule,
          const RunContext& context);

}  // namespace rondo
