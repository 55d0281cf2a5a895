#pragma once

#include <map>
#include <string>

#include "rondo/core/collective.hpp"
#include "rondo/core/topology.hpp"
#include "settings.hpp"

/// Several collectives over one fabric, as the command line says them: --tenant, and --demand more than once.
namespace rondo::cli {

struct SharedDemand {
  Demand demand;                     ///< custom, one chunk a contribution
  std::map<int, std::string> names;  ///< of the tenants
};

Option tenant_option();

/// Whether the command line names tenants.
bool are_tenants_asked(const Settings& settings);

/// The tenants of --tenant, then those of the files of --demand, each under a name of its own. Throws
/// Error(usage) for what --tenant says wrong, for names that stand twice and for options that every tenant
/// says for itself; what reading a demand throws.
SharedDemand read_tenants(const Settings& settings, const Topology& topology);

/// Of a demand with several tenants their numbers; else nothing.
std::map<int, std::string> numbers_as_names(const Demand& demand);

}  // namespace rondo::cli
