#include "fabrics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "input.hpp"
#include "nearest.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/generators.hpp"
#include "rondo/io/json_files.hpp"

namespace rondo::cli {
namespace {

namespace fs = std::filesystem;

/// The first of the known places that is there; empty when none is.
fs::path topology_folder() {
  std::vector<fs::path> places;
  if (const char* home = std::getenv("RONDO_HOME")) places.push_back(fs::path(home) / "jobs/topologies");
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error).parent_path();
  places.push_back(program / "../share/rondo/topologies");
  places.push_back(program / "../../jobs/topologies");
  places.push_back(fs::path(RONDO_SOURCE_DIR) / "jobs/topologies");
  const auto found = std::find_if(places.begin(), places.end(),
                                  [&](const fs::path& place) { return fs::is_directory(place, error); });
  return found == places.end() ? fs::path{} : *found;
}

std::vector<std::string> family_names() {
  std::vector<std::string> names;
  for (const TopologyGenerator& generator : topology_generators()) names.push_back(generator.name);
  return names;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// "torus:dims=8x8,bandwidth_GBps=50,75": values may be lists, so what follows a comma without '=' goes on
/// with the value.
Topology generate(const std::string& spec) {
  const std::size_t colon = spec.find(':');
  std::map<std::string, std::string> values;
  std::string name;
  for (std::size_t at = colon; at != std::string::npos;) {
    const std::size_t next = spec.find(',', at + 1);
    const std::string piece = spec.substr(at + 1, next - at - 1);
    const std::size_t equals = piece.find('=');
    at = next;
    if (equals == std::string::npos && !name.empty()) {
      values[name] += "," + piece;
      continue;
    }
    name = piece.substr(0, equals);
    if (equals == std::string::npos) {
      throw Error(
          ExitCode::usage,
          fmt::format("'{}' in topology '{}' has no value; write FAMILY:NAME=VALUE,NAME=VALUE", piece, spec));
    }
    if (!values.emplace(name, piece.substr(equals + 1)).second) {
      throw Error(ExitCode::usage,
                  fmt::format("'{}' is given twice in topology '{}'; give it once", name, spec));
    }
  }
  return generate_topology(spec.substr(0, colon), values);
}

Topology read_topology(const fs::path& path) {
  return read_as(path, [](const Json& json) { return topology_from_json(json); });
}

/// "0.1:0.5", or "0.1:0.5..0.9".
Topology degraded(const Topology& topology, const std::string& value, std::uint64_t seed) {
  const std::size_t colon = value.find(':');
  if (colon == std::string::npos) {
    throw Error(ExitCode::usage,
                fmt::format("--degrade is '{}'; write FRACTION:FACTOR, such as 0.1:0.5", value));
  }
  const double fraction = parse_number(value.substr(0, colon), "the fraction of --degrade");
  const std::string factor = value.substr(colon + 1);
  const std::size_t dots = factor.find("..");
  if (dots == std::string::npos) {
    return degrade(topology, fraction, parse_number(factor, "the factor of --degrade"), seed);
  }
  return degrade(topology, fraction, parse_number(factor.substr(0, dots), "the least factor of --degrade"),
                 parse_number(factor.substr(dots + 2), "the greatest factor of --degrade"), seed);
}

/// By its name, or its number.
NodeId find_node(const Topology& topology, const std::string& text) {
  for (std::size_t n = 0; n < topology.num_nodes(); ++n) {
    if (topology.nodes()[n].name == text || std::to_string(n) == text) return NodeId{n};
  }
  throw Error(ExitCode::usage,
              fmt::format("--without names the node '{}', which {} does not have; nodes have "
                          "the names and numbers of rondo topology generate's JSON",
                          text, topology.name()));
}

/// "c0g3:rail3,c1g0:rail0".
Topology without(Topology topology, const std::string& value) {
  for (std::size_t at = 0; at <= value.size();) {
    const std::size_t end = std::min(value.find(',', at), value.size());
    const std::string pair = value.substr(at, end - at);
    const std::size_t colon = pair.find(':');
    if (colon == std::string::npos) {
      throw Error(ExitCode::usage,
                  fmt::format("--without has '{}'; write NODE:NODE, such as c0g3:rail3", pair));
    }
    topology = without_links_between(topology, find_node(topology, pair.substr(0, colon)),
                                     find_node(topology, pair.substr(colon + 1)));
    at = end + 1;
  }
  return topology;
}

Forwarding parse_forwarding(const std::string& name) {
  if (name == "cut_through") return Forwarding::cut_through;
  if (name == "store_and_forward") return Forwarding::store_and_forward;
  throw Error(ExitCode::usage,
              fmt::format("--switch-forwarding is '{}'; it is cut_through or store_and_forward", name));
}

}  // namespace

std::vector<std::string> shipped_topologies() {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(topology_folder(), error)) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem());
  }
  std::sort(names.begin(), names.end());
  return names;
}

Topology load_topology(const std::string& spec) {
  const std::vector<std::string> families = family_names();
  const std::vector<std::string> shipped = shipped_topologies();
  const bool looks_like_file = spec.find('/') != std::string::npos || spec.ends_with(".json");
  if (!looks_like_file) {
    if (contains(shipped, spec)) return read_topology(topology_folder() / (spec + ".json"));
    const std::string family = spec.substr(0, spec.find(':'));
    if (contains(families, family)) return generate(spec);
    if (spec.find(':') != std::string::npos) {
      throw Error(ExitCode::usage, fmt::format("'{}' is no family of topologies{}; there are {}", family,
                                               did_you_mean(family, families), join(families)));
    }
  }
  if (looks_like_file || fs::exists(spec)) return read_topology(spec);
  std::vector<std::string> known = shipped;
  known.insert(known.end(), families.begin(), families.end());
  throw Error(ExitCode::no_input,
              fmt::format("topology '{}' is neither shipped ({}), nor a family ({}), nor a file{}", spec,
                          join(shipped), join(families), did_you_mean(spec, known)));
}

OptionGroup fabric_options() {
  return {
      "Fabric",
      {{"topology", "NAME|FILE|SPEC", "",
        "a shipped fabric (rondo topology list), a JSON file, or a generated one such as "
        "torus:dims=8x8,bandwidth_GBps=50"},
       {"degrade", "FRACTION:FACTOR", "",
        "multiply the bandwidth of a random FRACTION of the links by FACTOR, or each by one from a range: "
        "0.05:0.5..0.9"},
       {"degrade-seed", "N", "", "seed of the choice of degraded links (default: --seed)"},
       {"without", "NODE:NODE,...", "",
        "remove the links between two nodes, such as a GPU and the switch behind its NIC: c0g3:rail3"},
       {"seed", "N", "0", "seed of all that is random"},
       {"switch-forwarding", "HOW", "",
        "set all switches to cut_through or store_and_forward (default: as the topology says)"}}};
}

Topology changed_topology(Topology topology, const Settings& settings) {
  if (settings.has("without")) topology = without(std::move(topology), settings.text("without"));
  if (settings.has("degrade")) {
    const std::uint64_t seed = settings.seed(settings.has("degrade-seed") ? "degrade-seed" : "seed");
    topology = degraded(topology, settings.text("degrade"), seed);
  }
  if (settings.has("switch-forwarding")) {
    topology = with_switch_forwarding(topology, parse_forwarding(settings.text("switch-forwarding")));
  }
  return topology;
}

}  // namespace rondo::cli
