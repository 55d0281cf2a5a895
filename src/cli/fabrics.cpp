#include "fabrics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "rondo/core/error.hpp"
#include "rondo/core/generators.hpp"
#include "rondo/core/numbers.hpp"
#include "rondo/core/relay_memory.hpp"
#include "rondo/core/sketch.hpp"
#include "rondo/core/switch_peers.hpp"
#include "rondo/core/units.hpp"
#include "rondo/io/files.hpp"
#include "rondo/io/read_as.hpp"
#include "rondo/io/sketch_files.hpp"
#include "rondo/io/topology_files.hpp"

namespace rondo::cli {
namespace {

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
NodeId find_node(const std::string& option, const Topology& topology, const std::string& text) {
  for (std::size_t n = 0; n < topology.num_nodes(); ++n) {
    if (topology.nodes()[n].name == text || std::to_string(n) == text) return NodeId{n};
  }
  throw Error(ExitCode::usage, fmt::format("--{} names the node '{}', which {} does not have; nodes have "
                                           "the names and numbers of rondo topology generate's JSON",
                                           option, text, topology.name()));
}

Topology without(Topology topology, const std::string& value) {
  for (const LinkSelector& selector : link_selectors("without", value, topology, false))
    topology = without_links_between(topology, selector.a, selector.b);
  return topology;
}

/// The links that an entry of --scale-... names: all, of one node, or between two.
std::vector<LinkId> scaled_links(const Topology& topology, const std::string& option,
                                 const std::string& selector) {
  const std::size_t colon = selector.find(':');
  if (colon != std::string::npos) {
    return links_of(topology, {selector, find_node(option, topology, selector.substr(0, colon)),
                               find_node(option, topology, selector.substr(colon + 1))});
  }
  std::vector<LinkId> links;
  const NodeId node = selector == "all" ? NodeId{} : find_node(option, topology, selector);
  for (std::size_t l = 0; l < topology.num_links(); ++l) {
    const Link& link = topology.links()[l];
    if (!node.valid() || link.src == node || link.dst == node) links.emplace_back(l);
  }
  return links;
}

/// "all:2,c0g3:0.5,c0g3:rail3:0.1": each factor on its links, one after another.
Topology scaled(const Topology& topology, const std::string& option, const std::string& value) {
  TopologyData data = topology.data();
  for (std::size_t at = 0; at <= value.size();) {
    const std::size_t end = std::min(value.find(',', at), value.size());
    const std::string entry = value.substr(at, end - at);
    at = end + 1;
    const std::size_t last = entry.rfind(':');
    if (last == std::string::npos) {
      throw Error(ExitCode::usage, fmt::format("--{} has '{}'; write all:FACTOR, NODE:FACTOR or "
                                               "NODE:NODE:FACTOR, such as c0g3:rail3:0.5",
                                               option, entry));
    }
    const double factor = parse_number(entry.substr(last + 1), "the factor of --" + option);
    if (!(factor > 0) || !std::isfinite(factor)) {
      throw Error(ExitCode::usage, fmt::format("--{} has the factor {}; it is above 0 and finite (--without "
                                               "removes links)",
                                               option, factor));
    }
    for (const LinkId l : scaled_links(topology, option, entry.substr(0, last))) {
      Link& link = data.links[l.index()];
      if (option == "scale-latency") {
        link.latency_us *= factor;
      } else {
        scale_bandwidth(link, factor);
      }
    }
  }
  data.name += "-scaled";
  data.source += fmt::format("; {} {}", option, value);
  return Topology(std::move(data));
}

Forwarding parse_forwarding(const std::string& name) {
  if (name == "cut_through") return Forwarding::cut_through;
  if (name == "store_and_forward") return Forwarding::store_and_forward;
  throw Error(ExitCode::usage,
              fmt::format("--switch-forwarding is '{}'; it is cut_through or store_and_forward", name));
}

std::string why_profile_ignored(const Settings& settings) {
  return settings.has("profile") ? "" : "it says how a profile is meant; give --profile, or leave it out";
}

std::string why_profile_nodes_ignored(const Settings& settings) {
  const std::string why = why_profile_ignored(settings);
  return why.empty() && settings.has("sketch") ? "the sketch's nnodes says it; leave it out" : why;
}

Json read_json(const std::string& path) {
  return parse_json(read_text_file(path), path);
}

/// GPUs of the profile, or of the fabric, are the sketch's.
Sketch sketch_of(const std::string& path, const Json& json, int gpus) {
  return naming_file(path, [&] { return sketch_from_json(json, gpus); });
}

Topology profiled_topology(const Settings& settings) {
  if (settings.has("topology")) {
    throw Error(ExitCode::usage, "--topology and --profile both name the fabric; leave one of them out");
  }
  const std::string& path = settings.text("profile");
  const NodeProfile profile = read_as(path, [](const Json& json) { return profile_from_json(json); });
  ProfileUse use;
  use.unit_us = settings.positive("profile-unit");
  std::optional<Sketch> sketch;
  if (settings.has("sketch")) {
    const Json json = read_json(settings.text("sketch"));
    use.nodes = naming_file(settings.text("sketch"), [&] { return nodes_of_sketch(json); });
    sketch = sketch_of(settings.text("sketch"), json, use.nodes * profile.gpus);
    use.sketch = &*sketch;
  } else {
    use.nodes = static_cast<int>(settings.integer("profile-nodes", 1, 1024));
  }
  use.chunk_bytes = settings.is_given("profile-chunk") || !sketch || !sketch->input_bytes
                        ? parse_size(settings.text("profile-chunk"))
                        : *sketch->input_bytes;
  return naming_file(path, [&] { return topology_of(profile, use); });
}

int parse_peers(const std::string& word) {
  int peers = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), peers);
  if (error == std::errc() && end == word.data() + word.size() && peers >= 1) return peers;
  throw Error(ExitCode::usage,
              fmt::format("--peers is '{}'; give few, many or a whole number, 1 or more", word));
}

std::string why_degrade_seed_ignored(const Settings& settings) {
  return settings.has("degrade") ? "" : "no link is degraded; give --degrade, or leave it out";
}

}  // namespace

Option degrading_seed() {
  return {"seed", "N", "0", "seed of the choice of degraded links", [](const Settings& settings) {
            const std::string why = why_degrade_seed_ignored(settings);
            return why.empty() && settings.has("degrade-seed")
                       ? "--degrade-seed is the seed of all that is random here; leave one of them out"
                       : why;
          }};
}

OptionGroup fabric_options(Option seed) {
  return {
      "Fabric",
      {{"topology", "NAME|FILE|SPEC", "",
        "a shipped fabric or machine (rondo topology list), a JSON file, NCCL's topology XML "
        "(NCCL_TOPO_DUMP_FILE), the output of (nvidia-smi -L; nvidia-smi topo -m), or a generated one such "
        "as "
        "torus:dims=8x8,bandwidth_GBps=50"},
       {"degrade", "FRACTION:FACTOR", "",
        "multiply the bandwidth of a random FRACTION of the links by FACTOR, or each by one from a range: "
        "0.05:0.5..0.9"},
       {"degrade-seed", "N", "", "seed of the choice of degraded links (default: --seed)",
        why_degrade_seed_ignored},
       {"without", "NODE:NODE,...", "",
        "remove the links between two nodes, such as a GPU and the switch behind its NIC: c0g3:rail3"},
       std::move(seed),
       {"scale-latency", "LINKS:FACTOR,...", "",
        "multiply the latency of links: of all (all:2), of a node (c0g3:10) or between two (c0g3:rail3:10)"},
       {"scale-bandwidth", "LINKS:FACTOR,...", "", "multiply the bandwidth of links, named likewise"},
       {"relay-memory", "SIZE", "",
        "what each GPU may hold of data that it only passes on (buffer_bytes; default: as the topology "
        "says)"},
       {"profile", "FILE", "",
        "in place of --topology: a TACCL profile of a node, with message costs, in so many nodes as the "
        "sketch "
        "has"},
       {"profile-nodes", "N", "1", "without a sketch: nodes of the profile", why_profile_nodes_ignored},
       {"profile-chunk", "SIZE", "1MiB",
        "whose time a profile's betas are (default: the sketch's input_size, or this)", why_profile_ignored},
       {"profile-unit", "US", "1", "unit of a profile's times; TACCL's for 1 KB are in hundredths: 0.01",
        why_profile_ignored},
       {"sketch", "FILE", "",
        "a TACCL communication sketch: between nodes only those GPUs exchange data that it lets"},
       {"peers", "few|many|N", "many",
        "GPUs that a GPU sends to over each switch, as a port gives less the more peers it has: N, few (1: a "
        "ring), many (all others)"},
       {"switch-forwarding", "HOW", "",
        "set all switches to cut_through or store_and_forward (default: as the topology says)"}}};
}

std::vector<LinkSelector> link_selectors(const std::string& option, const std::string& value,
                                         const Topology& topology, bool with_factor) {
  std::vector<LinkSelector> selectors;
  for (std::size_t at = 0; at <= value.size();) {
    const std::size_t end = std::min(value.find(',', at), value.size());
    const std::string entry = value.substr(at, end - at);
    const std::size_t last = entry.rfind(':');
    const std::string nodes = with_factor && last != std::string::npos ? entry.substr(0, last) : entry;
    const std::size_t colon = nodes.find(':');
    if (colon == std::string::npos) {
      throw Error(ExitCode::usage,
                  fmt::format("--{} has '{}'; write NODE:NODE{}, such as c0g3:rail3{}", option, entry,
                              with_factor ? ":FACTOR" : "", with_factor ? ":0.5" : ""));
    }
    selectors.push_back(
        {nodes, find_node(option, topology, nodes.substr(0, colon)),
         find_node(option, topology, nodes.substr(colon + 1)),
         with_factor ? parse_number(entry.substr(last + 1), "the factor of --" + option) : 1});
    at = end + 1;
  }
  return selectors;
}

std::vector<LinkId> links_of(const Topology& topology, const LinkSelector& selector) {
  std::vector<LinkId> links;
  for (std::size_t l = 0; l < topology.num_links(); ++l) {
    const Link& link = topology.links()[l];
    if ((link.src == selector.a && link.dst == selector.b) ||
        (link.src == selector.b && link.dst == selector.a))
      links.emplace_back(l);
  }
  if (links.empty()) {
    throw Error(ExitCode::usage, fmt::format("no link joins {}, on {}; name two nodes that one does",
                                             selector.text, topology.name()));
  }
  return links;
}

Topology changed_topology(Topology topology, const Settings& settings) {
  if (settings.has("without")) topology = without(std::move(topology), settings.text("without"));
  if (settings.has("degrade")) {
    const std::uint64_t seed = settings.seed(settings.has("degrade-seed") ? "degrade-seed" : "seed");
    topology = degraded(topology, settings.text("degrade"), seed);
  }
  for (const char* option : {"scale-latency", "scale-bandwidth"}) {
    if (settings.has(option)) topology = scaled(topology, option, settings.text(option));
  }
  if (settings.has("relay-memory")) {
    const std::string& size = settings.text("relay-memory");
    topology = with_relay_memory(topology, size == "0" ? 0 : parse_size(size));
  }
  if (settings.has("switch-forwarding")) {
    topology = with_switch_forwarding(topology, parse_forwarding(settings.text("switch-forwarding")));
  }
  const std::string& peers = settings.text("peers");
  if (peers == "few") return with_switch_peers(topology, 1);
  if (peers != "many") return with_switch_peers(topology, parse_peers(peers));
  return topology;
}

Topology sketched_topology(Topology topology, const Settings& settings) {
  if (!settings.has("sketch")) return topology;
  const std::string& path = settings.text("sketch");
  const Sketch sketch = sketch_of(path, read_json(path), static_cast<int>(topology.num_gpus()));
  return naming_file(path, [&] {
    if (!settings.has("profile")) check_for_fabric(sketch);
    Topology left = restricted(topology, sketch);
    check_symmetry(left, sketch);
    return left;
  });
}

Topology named_topology(const Settings& settings) {
  return settings.has("profile") ? profiled_topology(settings) : load_topology(settings.text("topology"));
}

Topology whole_fabric(const Settings& settings) {
  return changed_topology(named_topology(settings), settings);
}

Topology fabric_of(const Settings& settings) {
  return sketched_topology(whole_fabric(settings), settings);
}

}  // namespace rondo::cli
