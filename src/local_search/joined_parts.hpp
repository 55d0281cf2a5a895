#pragma once

#include <cstddef>

#include "rondo/local_search/joined_plan.hpp"

/// Plans of a part of each contribution, and what they make of the whole. Starts only define an order.
namespace rondo {

/// What a plan in so many chunks does with the first one of each contribution.
JoinedPlan of_first_chunks(const JoinedPlan& plan, std::size_t chunks);

/// The same in chunks of half the bytes, both halves together.
JoinedPlan in_halves(const JoinedPlan& plan);

/// A plan of one chunk a contribution so many times, each for a chunk of its own: the next one begins when
/// the busiest link of the one before would be free if it were never idle. `space`: of the plan, placed.
JoinedPlan repeated(const JoinedPlan& plan, std::size_t times, const JoinedSpace& space);

}  // namespace rondo
