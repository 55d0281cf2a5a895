#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "portfolio.hpp"

/// What the finish times of trials tell of more chunks.
namespace rondo {

/// Whether a policy of the e-th engine, which pipelines, ends later than another one in however many chunks.
bool stays_behind(const std::string& policy, std::size_t e, const std::vector<Trial>& trials);

/// Whether a policy of the e-th engine was behind the best one of it in the most chunks below `chunks`.
bool was_behind(const std::string& policy, std::size_t e, int chunks, const std::vector<Trial>& trials);

/// When a policy of the e-th engine, which pipelines, ends in so many chunks, as far as its finish times in
/// the most that it was tried in tell: 0 where it was tried in less than two numbers of them.
double expected_us(const std::string& policy, std::size_t e, int chunks, const std::vector<Trial>& trials);

struct Expected {
  std::string policy = {};
  double finish_us = std::numeric_limits<double>::infinity();
};

/// Of the policies tried of the e-th engine, which pipelines, but not in so many chunks, the one that is
/// expected to end first in them; infinity where there is none.
Expected first_in_more(std::size_t e, int chunks, const std::vector<Trial>& trials);

/// Policies of an engine, which pipelines, that were not tried in as many chunks as the best candidate has,
/// and of which nothing tells that they stay behind.
std::vector<std::string> untold_policies(const EngineInfo& engine, const Candidate& best,
                                         const std::vector<Trial>& trials);

/// Whether engines that pipeline, as far as tried, end after `us` in however many chunks, every policy of
/// them.
bool all_stay_behind(const std::vector<Trial>& trials, double us);

/// Whether every policy ended more than 2 % later in the two greatest numbers of chunks tried than in
/// another.
bool all_end_later_in_more(const std::vector<Trial>& trials);

}  // namespace rondo
