#include "rondo/io/topology_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "rondo/core/error.hpp"
#include "rondo/core/generators.hpp"
#include "rondo/core/nearest.hpp"
#include "rondo/io/read_as.hpp"
#include "shipped_topologies.hpp"

namespace rondo {
namespace {

std::vector<std::string> family_names() {
  std::vector<std::string> names;
  for (const TopologyGenerator& generator : topology_generators()) names.push_back(generator.name);
  return names;
}

}  // namespace

std::vector<std::string> shipped_topologies() {
  std::vector<std::string> names;
  for (const ShippedTopology& shipped : shipped_topology_files()) names.push_back(shipped.name);
  std::ranges::sort(names);
  return names;
}

Topology load_topology(const std::string& spec) {
  const std::vector<std::string> families = family_names();
  const bool looks_like_file = spec.find('/') != std::string::npos || spec.ends_with(".json");
  if (!looks_like_file) {
    for (const ShippedTopology& shipped : shipped_topology_files()) {
      if (shipped.name == spec) return topology_from_json(parse_json(shipped.json, spec));
    }
    const std::string family = spec.substr(0, spec.find(':'));
    if (std::find(families.begin(), families.end(), family) != families.end()) {
      return generate_topology(spec);
    }
    if (spec.find(':') != std::string::npos) {
      throw Error(ExitCode::usage, fmt::format("'{}' is no family of topologies{}; there are {}", family,
                                               did_you_mean(family, families), join(families)));
    }
  }
  if (looks_like_file || std::filesystem::exists(spec)) {
    return read_as(spec, [](const Json& json) { return topology_from_json(json); });
  }
  const std::vector<std::string> shipped = shipped_topologies();
  std::vector<std::string> known = shipped;
  known.insert(known.end(), families.begin(), families.end());
  throw Error(ExitCode::no_input,
              fmt::format("topology '{}' is neither shipped ({}), nor a family ({}), nor a file{}", spec,
                          join(shipped), join(families), did_you_mean(spec, known)));
}

}  // namespace rondo
