#pragma once

#include <map>
#include <memory>
#include <string>

#include "fabrics.hpp"
#include "rondo/core/collective.hpp"
#include "rondo/core/topology.hpp"
#include "rondo/io/json_files.hpp"
#include "rondo/pipeline/scenarios.hpp"
#include "settings.hpp"

/// What is to be solved, and the `rondo-problem` document that holds it.
namespace rondo::cli {

struct ProblemDocument {
  std::shared_ptr<const Topology> topology;
  Demand demand;                            ///< one chunk a contribution
  GpuId root;                               ///< of Broadcast, Scatter and Gather; 0 for the others
  Json sketch = nullptr;                    ///< of --sketch, where an engine is to heed all of it
  std::map<int, std::string> tenants = {};  ///< names by number, where several share the fabric
  std::shared_ptr<const Scenarios> scenarios = nullptr;  ///< of --scenarios
};

/// Topology and collective: what `solve` and `bound` share.
std::vector<OptionGroup> problem_options(Option seed = degrading_seed());

/// Reads files and checks that all data can reach its destinations. Throws Error.
ProblemDocument read_problem(const Settings& settings);

/// Producer, topology, collective, size, root, the custom demand where there is one, and `options` as
/// resolved. Equal problems give equal text.
Json problem_to_json(const ProblemDocument& problem, const Json& options);
/// The way back; all but the options. Throws Error(bad_data).
ProblemDocument problem_from_json(const Json& json);

}  // namespace rondo::cli
