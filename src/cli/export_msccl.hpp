#pragma once

#include <string>

#include "rondo/core/schedule.hpp"
#include "rondo/lowering/lowering.hpp"
#include "settings.hpp"

namespace rondo::cli {

inline constexpr const char* kMscclFormat = "msccl-xml";  ///< as --format names it

/// The options of `rondo export --format msccl-xml`.
OptionGroup msccl_options();

/// The schedule as MSCCL XML, which the checker has accepted. Throws Error(bad_data) for an invalid schedule,
/// Error(usage), Error(unavailable) as lower() does.
std::string write_msccl_xml(const ProvenSchedule& proven, const Settings& settings);
std::string write_msccl_xml(const ProvenSchedule& proven, const LoweringOptions& options);

}  // namespace rondo::cli
