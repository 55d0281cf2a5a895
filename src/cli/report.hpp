#pragma once

#include <map>
#include <string>

#include "figures.hpp"
#include "rondo/core/stopwatch.hpp"
#include "rondo/io/json_files.hpp"
#include "rondo/parallel/communicator.hpp"
#include "rondo/pipeline/synthesize.hpp"

/// report.json: what a run came to.
namespace rondo::cli {

/// Collective (memory is gathered from all ranks). `digest`: of the schedule. `clock` runs since the command
/// began.
Json make_report(const SynthesisResult& result, const std::string& digest, const Communicator& communicator,
                 const Stopwatch& clock, const std::map<int, std::string>& tenant_names = {});

/// Throws Error(bad_data) where a figure is missing.
Figures figures_of_report(const Json& report);

/// Throws Error(bad_data) unless the report speaks of this schedule.
void check_report(const Json& report, const ProvenSchedule& proven);

}  // namespace rondo::cli
