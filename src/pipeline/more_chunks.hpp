#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "portfolio.hpp"

/// What the finish times of trials tell of more chunks.
namespace rondo {

/// Whether a policy of the e-th engine, which pipelines, ends later than another one in however many chunks.
bool stays_behind(const std::string& policy, std::size_t e, const std::vector<Trial>& trials);

/// Whether a policy of the e-th engine was behind the best one of it in the most chunks below `chunks`.
bool was_behind(const std::string& policy, std::size_t e, int chunks, const std::vector<Trial>& trials);

/// By how much a candidate's policy, which pipelines, would end earlier in twice as many chunks, by its
/// finish times up to as many as it has; infinity where it was not tried in fewer.
double gain_of_twice_as_many_us(const std::vector<Trial>& trials, const Candidate& candidate);

/// Whether engines that pipeline, as far as tried, end after `us` in however many chunks, every policy of
/// them.
bool all_stay_behind(const std::vector<Trial>& trials, double us);

/// Whether every policy ended more than 2 % later in the two greatest numbers of chunks tried than in
/// another.
bool all_end_later_in_more(const std::vector<Trial>& trials);

}  // namespace rondo
