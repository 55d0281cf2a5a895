#include <fmt/format.h>

#include <limits>

#include "command.hpp"
#include "describe_topology.hpp"
#include "fabrics.hpp"
#include "rondo/core/collective.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/generators.hpp"
#include "rondo/io/machine.hpp"
#include "rondo/io/read_as.hpp"
#include "rondo/io/topology_files.hpp"
#include "rondo/pictures/pictures.hpp"
#include "table.hpp"

/// `rondo topology list | show | check | generate | compose`.
namespace rondo::cli {
namespace {

std::string run_topology_list(const Settings&) {
  std::string text = "Shipped:\n";
  for (const std::string& name : shipped_topologies()) {
    text += fmt::format("  {}\n", topology_line(load_topology(name)));
  }
  text += "\nShipped machines (alone; rondo topology compose joins several):\n";
  for (const std::string& name : shipped_machines()) {
    text += fmt::format("  {}\n", topology_line(load_topology(name)));
  }
  text += "\nGenerated (FAMILY:NAME=VALUE,NAME=VALUE; defaults in brackets):\n";
  for (const TopologyGenerator& family : topology_generators()) {
    text += fmt::format("  {}: {}\n", family.name, family.help);
    std::vector<std::vector<std::string>> rows;
    for (const GeneratorParameter& p : family.parameters) {
      rows.push_back({"      " + p.name, fmt::format("[{}]", p.default_value),
                      fmt::format("{} ({})", p.help, p.range.describe())});
    }
    text += format_table(rows);
  }
  return text;
}

std::vector<OptionGroup> no_options() {
  return {};
}

std::vector<OptionGroup> show_options() {
  return {fabric_options(),
          {"Output", {{"svg", "FILE", "", "draw it too: the wider a link, the more bandwidth"}}}};
}

std::string run_topology_show(const Settings& settings) {
  const Topology topology = fabric_of(settings);
  if (settings.has("svg")) write_text_file(settings.text("svg"), topology_picture(topology));
  return describe_topology(topology);
}

std::vector<OptionGroup> compose_options() {
  return {{"Machines",
           {{"node", "NAME|FILE", "",
             "a shipped machine (rondo topology list), or NCCL's topology XML (NCCL_TOPO_DUMP_FILE) of one"},
            {"nodes", "N", "", "how many of them"},
            {"network", "NAME:PARAMETERS", "rails", networks_help()}}},
          {"Output", {{"output", "FILE", "", "file to write; replaced if it exists"}}}};
}

std::string run_topology_compose(const Settings& settings) {
  const std::string& output = settings.text("output");
  const auto nodes = static_cast<int>(settings.integer("nodes", 1, std::numeric_limits<int>::max()));
  const Topology topology = compose(load_machine(settings.text("node")), nodes, settings.text("network"));
  write_text_file(output, format_json(topology_to_json(topology)));
  return fmt::format("wrote {}: {}\n", output, topology_line(topology));
}

std::vector<OptionGroup> check_options() {
  return {{"Input", {{"file", "FILE", "", "a topology, JSON of format rondo-topology"}}}};
}

std::string run_topology_check(const Settings& settings) {
  const std::string& file = settings.text("file");
  const Topology topology = read_as(file, [](const Json& json) { return topology_from_json(json); });
  naming_file(file, [&] {
    check_reachable(topology, make_demand(Collective::allgather, 1, topology.num_gpus(), 1));
  });
  return fmt::format("valid: {}; every GPU reaches every other\n", topology_line(topology));
}

std::vector<OptionGroup> generate_options() {
  return {{"Output", {{"output", "FILE", "", "file to write; replaced if it exists"}}}, fabric_options()};
}

std::string run_topology_generate(const Settings& settings) {
  const std::string& output = settings.text("output");
  const Topology topology = fabric_of(settings);
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
          .run = on_root_alone(run_topology_list)};
}

Command topology_show_command() {
  return {.name = "topology show",
          .arguments = "NAME|FILE|SPEC",
          .summary = "nodes and links of a fabric",
          .positional = "topology",
          .notes =
              "Examples:\n"
              "  rondo topology show ndv2-2 --svg ndv2.svg\n"
              "  rondo topology show torus:dims=4x4x4 --degrade 0.1:0.5 --seed 1\n",
          .options = show_options,
          .run = on_root_alone(run_topology_show)};
}

Command topology_check_command() {
  return {.name = "topology check",
          .arguments = "FILE",
          .summary = "whether a topology file is valid and every GPU reaches every other",
          .positional = "file",
          .notes = "Exit code 0 when it is, 65 with the first fault named otherwise.\n",
          .options = check_options,
          .run = on_root_alone(run_topology_check)};
}

Command topology_generate_command() {
  return {.name = "topology generate",
          .arguments = "NAME|FILE|SPEC --output FILE",
          .summary = "write a fabric as a JSON file",
          .positional = "topology",
          .notes =
              "`rondo topology list` shows the families and their parameters.\n\n"
              "Examples:\n"
              "  rondo topology generate torus:dims=8x8,bandwidth_GBps=50 --output torus.json\n"
              "  rondo topology generate dgx1 --degrade 0.1:0.5 --output damaged.json\n",
          .options = generate_options,
          .run = on_root_alone(run_topology_generate)};
}

Command topology_compose_command() {
  return {.name = "topology compose",
          .arguments = "--node NAME|FILE --nodes N --network NAME:PARAMETERS --output FILE",
          .summary = "join equal machines by a network, and write the fabric as a JSON file",
          .positional = "",
          .notes =
              "A GPU reaches the network by the NICs that are nearest to it on its buses. What GPUs share of "
              "PCIe is\nshared bandwidth. GPUs are numbered machine by machine, in each as NCCL does.\n\n"
              "Examples:\n"
              "  rondo topology compose --node dgx-h100 --nodes 4 --network rails --output h100.json\n"
              "  rondo topology compose --node node.xml --nodes 16 --network "
              "fat_tree:nodes_per_leaf=4,spines=4,oversubscription=2 --output cluster.json\n",
          .options = compose_options,
          .run = on_root_alone(run_topology_compose)};
}

}  // namespace rondo::cli
