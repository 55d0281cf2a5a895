#include "rondo/io/topology_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "rondo/core/error.hpp"
#include "rondo/core/generators.hpp"
#include "rondo/core/nearest.hpp"
#include "rondo/io/machine.hpp"
#include "rondo/io/read_as.hpp"
#include "shipped_topologies.hpp"

namespace rondo {
namespace {

std::vector<std::string> family_names() {
  std::vector<std::string> names;
  for (const TopologyGenerator& generator : topology_generators()) names.push_back(generator.name);
  return names;
}

/// A topology of Rondo's begins with a brace.
bool is_json_text(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  return begin != std::string::npos && text[begin] == '{';
}

bool looks_like_file(const std::string& spec) {
  return spec.find('/') != std::string::npos || spec.ends_with(".json") || spec.ends_with(".xml") ||
         spec.ends_with(".txt");
}

}  // namespace

std::vector<std::string> shipped_machines() {
  std::vector<std::string> names;
  for (const ShippedMachine& shipped : shipped_machine_files()) names.push_back(shipped.name);
  std::ranges::sort(names);
  return names;
}

Machine load_machine(const std::string& spec) {
  if (!looks_like_file(spec)) {
    for (const ShippedMachine& shipped : shipped_machine_files()) {
      if (shipped.name == spec) return parse_machine(shipped.xml, spec);
    }
    if (!std::filesystem::exists(spec)) {
      const std::vector<std::string> shipped = shipped_machines();
      throw Error(ExitCode::no_input, fmt::format("machine '{}' is neither shipped ({}) nor a file{}", spec,
                                                  join(shipped), did_you_mean(spec, shipped)));
    }
  }
  const std::string text = read_text_file(spec);
  if (is_json_text(text)) {
    throw Error(ExitCode::bad_data,
                fmt::format("{} is JSON, which does not say where a network joins NICs; give the XML of "
                            "NCCL_TOPO_DUMP_FILE",
                            spec));
  }
  return parse_machine(text, spec);
}

std::vector<std::string> shipped_topologies() {
  std::vector<std::string> names;
  for (const ShippedTopology& shipped : shipped_topology_files()) names.push_back(shipped.name);
  std::ranges::sort(names);
  return names;
}

Topology load_topology(const std::string& spec) {
  const std::vector<std::string> families = family_names();
  if (!looks_like_file(spec)) {
    for (const ShippedMachine& shipped : shipped_machine_files()) {
      if (shipped.name == spec) return topology_of(parse_machine(shipped.xml, spec));
    }
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
  if (looks_like_file(spec) || std::filesystem::exists(spec)) {
    const std::string text = read_text_file(spec);
    if (spec.ends_with(".json") || is_json_text(text))
      return read_as(spec, [](const Json& json) { return topology_from_json(json); });
    return topology_of(parse_machine(text, spec));
  }
  std::vector<std::string> shipped = shipped_topologies();
  for (const std::string& machine : shipped_machines()) shipped.push_back(machine);
  std::vector<std::string> known = shipped;
  known.insert(known.end(), families.begin(), families.end());
  throw Error(ExitCode::no_input,
              fmt::format("topology '{}' is neither shipped ({}), nor a family ({}), nor a file{}", spec,
                          join(shipped), join(families), did_you_mean(spec, known)));
}

}  // namespace rondo
