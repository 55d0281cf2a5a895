#pragma once

#include <memory>

#include "rondo/core/schedule.hpp"
#include "rondo/io/json_files.hpp"
#include "rondo/pipeline/scenarios.hpp"
#include "settings.hpp"

/// Several fabrics that one schedule is for: --scenarios.
namespace rondo::cli {

Option scenarios_option();

/// The fabrics of the file that --scenarios names, each `own` with what the file changes; null where it is
/// not given. Throws Error, naming the file and the scenario.
std::shared_ptr<const Scenarios> read_scenarios(const Settings& settings, const Topology& own);

/// As problem.json keeps them, with whole topologies; and the way back, which throws Error(bad_data).
Json scenarios_to_json(const Scenarios& scenarios);
std::shared_ptr<const Scenarios> scenarios_from_json(const Json& json);

/// `scenarios` of a report.
Json robustness_to_json(const Robustness& robustness);
/// Times the schedule on each fabric anew and derives the bounds from their certificates. Throws
/// Error(bad_data) where `scenarios` of the report says anything else, or is missing or not asked for.
/// `concurrency`: as the schedule was made with.
void check_scenarios(const Json& report, const ProvenSchedule& proven, const Scenarios* asked,
                     int concurrency);
/// What the report says of them, a line each; nothing where there are none.
std::string scenarios_of_report(const Json& report);

}  // namespace rondo::cli
