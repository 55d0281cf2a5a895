#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rondo/catalogue/build.hpp"

namespace rondo::catalogue {

/// What schedules take at sizes, by name and size.
using KnownTimes = std::map<std::pair<std::string, double>, double>;

class Replays;

/// Collective. As find_bins() of build.hpp; what is known of each series is not replayed again.
void find_bins(const Folder& folder, const std::vector<Series>& series, const std::vector<KnownTimes>& known,
               std::shared_ptr<Replays> replays, const RunContext& context);

}  // namespace rondo::catalogue
