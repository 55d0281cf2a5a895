#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

/// The same flow solved in two ways, AllToAll of 1 GB. Each prints what it measures and returns it;
/// "difference" is relative, null where one way ended at its limit.
namespace rondo::benchmarks::linear {

using Json = nlohmann::ordered_json;

/// The steady-state flow of orbits and of all links and origins.
Json compare_orbits(const std::string& fabric, double time_limit_s);

/// The same for the share of the data that a flow over time delivers in 8 epochs of a tenth of the steady
/// state's time.
Json compare_orbits_over_time(const std::string& fabric, double time_limit_s);

/// The steady-state flow of a topology with a twentieth of its links at 50 to 90 % of their bandwidth, by
/// simplex and by columns, on one rank.
Json compare_columns(const std::string& fabric, double time_limit_s);

/// Whole command `rondo bound`.
Json measure_bound(const std::filesystem::path& rondo, const std::string& fabric);

}  // namespace rondo::benchmarks::linear
