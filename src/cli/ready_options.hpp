#pragma once

#include <string>
#include <vector>

#include "rondo/core/collective.hpp"
#include "settings.hpp"

/// GPUs that are late: --ready.
namespace rondo::cli {

Option ready_option();

/// "3:250,5-7:100" (GPU or range, colon, us), or the same in the file of that name, where lines are as good
/// as commas and '#' begins a comment. One time a GPU, 0 where none is named. Throws Error(usage) for GPUs
/// out of range or named twice and times that are negative or not finite.
std::vector<double> parse_ready(const std::string& value, std::size_t num_gpus);

/// The demand of a named collective to which each GPU brings its data when --ready says: `custom`, unless all
/// times are 0.
Demand with_ready_times(const Settings& settings, Demand demand);

}  // namespace rondo::cli
