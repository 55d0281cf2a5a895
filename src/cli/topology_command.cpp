#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "command.hpp"
#include "describe_topology.hpp"
#include "fabrics.hpp"
#include "input.hpp"
#include "nearest.hpp"
#include "rondo/core/collective.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/generators.hpp"
#include "table.hpp"

/// `rondo topology list | show | check | generate`.
namespace rondo::cli {
namespace {

std::string list(const Settings&) {
  std::string text = "Shipped:\n";
  for (const std::string& name : shipped_topologies()) {
    text += fmt::format("  {}\n", topology_line(load_topology(name)));
  }
  text += "\nGenerated (FAMILY:NAME=VALUE,NAME=VALUE; defaults in brackets):\n";
  for (const TopologyGenerator& family : topology_generators()) {
    text += fmt::format("  {}: {}\n", family.name, family.help);
    std::vector<std::vector<std::string>> rows;
    for (const GeneratorParameter& p : family.parameters) {
      rows.push_back({"      " + p.name, fmt::format("[{}]", p.default_value), p.help});
    }
    text += format_table(rows);
  }
  return text;
}

std::vector<OptionGroup> no_options(const std::vector<std::string>&) {
  return {};
}

std::vector<OptionGroup> show_options(const std::vector<std::string>&) {
  OptionGroup fabric = fabric_options();
  return {fabric};
}

std::string show(const Settings& settings) {
  return describe_topology(changed_topology(load_topology(settings.text("topology")), settings));
}

std::vector<OptionGroup> check_options(const std::vector<std::string>&) {
  return {{"Input", {{"file", "FILE", "", "a topology, JSON of format rondo-topology"}}}};
}

std::string check(const Settings& settings) {
  const std::string& file = settings.text("file");
  const Topology topology = read_as(file, [](const Json& json) { return topology_from_json(json); });
  naming_file(file, [&] {
    check_reachable(topology, make_demand(Collective::allgather, 1, topology.num_gpus(), 1));
  });
  return fmt::format("valid: {}; every GPU reaches every other\n", topology_line(topology));
}

const TopologyGenerator* find_family(const std::string& name) {
  const auto& all = topology_generators();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const TopologyGenerator& f) { return f.name == name; });
  return found == all.end() ? nullptr : &*found;
}

/// The family's parameters are options, so that they have --help, defaults and suggestions.
std::vector<OptionGroup> generate_options(const std::vector<std::string>& arguments) {
  std::vector<std::string> names;
  for (const TopologyGenerator& family : topology_generators()) names.push_back(family.name);
  std::vector<OptionGroup> groups = {{"Output",
                                      {{"family", "FAMILY", "", join(names)},
                                       {"output", "FILE", "", "file to write; replaced if it exists"}}},
                                     {"Changes", fabric_changes()}};
  const TopologyGenerator* family = nullptr;
  for (const std::string& argument : arguments) {
    if (family == nullptr) family = find_family(argument);
  }
  if (family == nullptr) return groups;
  OptionGroup parameters{fmt::format("Parameters of {}: {}", family->name, family->help), {}};
  for (const GeneratorParameter& p : family->parameters) {
    parameters.options.push_back({p.name, "VALUE", p.default_value, p.help});
  }
  groups.push_back(std::move(parameters));
  return groups;
}

std::string generate(const Settings& settings) {
  const std::string& name = settings.text("family");
  const std::string& output = settings.text("output");
  std::map<std::string, std::string> values;
  if (const TopologyGenerator* family = find_family(name)) {
    for (const GeneratorParameter& p : family->parameters) {
      if (settings.has(p.name)) values[p.name] = settings.text(p.name);
    }
  }
  const Topology topology = changed_topology(generate_topology(name, values), settings);
  write_text_file(output, format_json(topology_to_json(topology)));
  return fmt::format("wrote {}: {}\n", output, topology_line(topology));
}

}  // namespace

Command topology_list_command() {
  return {.name = "topology list",
          .arguments = "",
          .summary = "the shipped fabrics and the families of generated ones",
          .positional = "",
          .notes = "",
          .options = no_options,
          .run = on_root_alone(list)};
}

Command topology_show_command() {
  return {.name = "topology show",
          .arguments = "NAME|FILE|SPEC",
          .summary = "nodes and links of a fabric",
          .positional = "topology",
          .notes =
              "Examples:\n"
              "  rondo topology show ndv2-2\n"
              "  rondo topology show torus:dims=4x4x4 --degrade 0.1:0.5 --seed 1\n",
          .options = show_options,
          .run = on_root_alone(show)};
}

Command topology_check_command() {
  return {.name = "topology check",
          .arguments = "FILE",
          .summary = "whether a topology file is valid and every GPU reaches every other",
          .positional = "file",
          .notes = "Exit code 0 when it is, 65 with the first fault named otherwise.\n",
          .options = check_options,
          .run = on_root_alone(check)};
}

Command topology_generate_command() {
  return {.name = "topology generate",
          .arguments = "FAMILY [--PARAMETER VALUE ...] --output FILE",
          .summary = "write a generated fabric; `generate FAMILY --help` shows its parameters",
          .positional = "family",
          .notes =
              "With --config, FAMILY still stands on the command line: it says which options there are.\n\n"
              "Example:\n"
              "  rondo topology generate torus --dims 8x8 --bandwidth_GBps 50 --output torus.json\n",
          .options = generate_options,
          .run = on_root_alone(generate)};
}

}  // namespace rondo::cli
