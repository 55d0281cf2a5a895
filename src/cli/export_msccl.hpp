#pragma once

#include <string>
#include <vector>

#include "rondo/core/schedule.hpp"
#include "rondo/lowering/lowering.hpp"
#include "settings.hpp"

namespace rondo::cli {

inline constexpr const char* kMscclFormat = "msccl-xml";  ///< as --format names them
inline constexpr const char* kPlanFormat = "mscclpp";

/// The options of `rondo export` for these formats.
std::vector<OptionGroup> program_options();

/// The schedule as MSCCL XML, which the checker has accepted. Throws Error(bad_data) for an invalid schedule,
/// Error(usage), Error(unavailable) as lower() does.
std::string write_msccl_xml(const ProvenSchedule& proven, const Settings& settings);
std::string write_msccl_xml(const ProvenSchedule& proven, const LoweringOptions& options);

/// The schedule as an execution plan of MSCCL++, which the checker has accepted. Throws as write_msccl_xml
/// does.
std::string write_plan(const ProvenSchedule& proven, const Settings& settings);
std::string write_plan(const ProvenSchedule& proven, const PlanOptions& options);

}  // namespace rondo::cli
