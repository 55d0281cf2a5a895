#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "link_rates.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/nearest.hpp"
#include "rondo/core/numbers.hpp"
#include "rondo/io/machine.hpp"

namespace rondo {
namespace {

constexpr int kMostNodes = 100'000;

struct Parameter {
  const char* name;
  const char* help;
  double default_value;
  double least;
  double most;
};

const Parameter kPorts{"ports", "of a switch that the machines are joined to; 0: any number", 0, 0, 1 << 20};
const Parameter kNodesPerLeaf{
    "nodes_per_leaf", "machines below a leaf switch; 0: a fourth of them, at least one", 0, 0, kMostNodes};
const Parameter kSpines{"spines", "switches that join the leaves", 2, 1, 1024};
const Parameter kOversubscription{"oversubscription", "bandwidth into a leaf over that to the spines", 1,
                                  0.01, 1000};

using Values = std::map<std::string, double>;

/// All ports of one machine (of several that NVLink joins: of each), in the order of its file.
using MachinePorts = std::vector<NetworkPort>;

struct Joining {
  TopologyData& data;
  const std::vector<MachinePorts>& machines;
  const Values& values;

  int value(const Parameter& parameter) const { return static_cast<int>(values.at(parameter.name)); }
};

NodeId add_switch(TopologyData& data, const std::string& name) {
  data.nodes.push_back({.kind = NodeKind::switch_, .name = name, .multicast = false});
  return NodeId(static_cast<std::int32_t>(data.nodes.size() - 1));
}

void add_link(TopologyData& data, NodeId from, NodeId to, double GBps, double latency_us) {
  data.links.push_back({.src = from, .dst = to, .bandwidth_GBps = GBps, .latency_us = latency_us});
}

void plug(const Joining& in, const NetworkPort& port, NodeId into) {
  add_link(in.data, port.out, into, port.GBps, port.latency_us);
  add_link(in.data, into, port.in, port.GBps, port.latency_us);
}

void check_ports(const Joining& in, std::size_t wanted, const std::string& what) {
  const int ports = in.value(kPorts);
  if (ports == 0 || wanted <= static_cast<std::size_t>(ports)) return;
  throw Error(ExitCode::usage,
              fmt::format("{} would take {} ports, and --network says that switches have {}; take fewer "
                          "nodes, or switches with more ports",
                          what, wanted, ports));
}

void join_rails(const Joining& in) {
  for (std::size_t rail = 0; rail < in.machines.front().size(); ++rail) {
    check_ports(in, in.machines.size(), fmt::format("the switch of rail {}", rail));
    const NodeId joint = add_switch(in.data, fmt::format("rail{}", rail));
    for (const MachinePorts& machine : in.machines) plug(in, machine[rail], joint);
  }
}

/// Machines below a leaf; throws where they do not fill the leaves.
std::size_t nodes_per_leaf(const Joining& in) {
  const std::size_t nodes = in.machines.size();
  const auto asked = static_cast<std::size_t>(in.value(kNodesPerLeaf));
  const std::size_t each = asked > 0 ? asked : std::max<std::size_t>(1, nodes / 4);
  if (nodes % each == 0) return each;
  throw Error(ExitCode::usage,
              fmt::format("{} nodes do not fill leaves of {}; give nodes_per_leaf={} or another "
                          "divisor of {}",
                          nodes, each, nodes, nodes));
}

/// Each of `leaves` to all spines, of which there are as many as --network says.
void join_leaves(const Joining& in, const std::vector<NodeId>& leaves, double leaf_GBps) {
  const int spines = in.value(kSpines);
  const double GBps = leaf_GBps / spines / in.values.at(kOversubscription.name);
  for (int s = 0; s < spines; ++s) {
    const NodeId spine = add_switch(in.data, fmt::format("spine{}", s));
    for (const NodeId leaf : leaves) {
      add_link(in.data, leaf, spine, GBps, kSwitchUs);
      add_link(in.data, spine, leaf, GBps, kSwitchUs);
    }
  }
}

/// All NICs of a machine at one leaf.
void join_leaf_spine(const Joining& in) {
  const std::size_t each = nodes_per_leaf(in);
  std::vector<NodeId> leaves;
  double leaf_GBps = 0;
  for (const NetworkPort& port : in.machines.front()) leaf_GBps += port.GBps * static_cast<double>(each);
  check_ports(in, each * in.machines.front().size() + static_cast<std::size_t>(in.value(kSpines)), "a leaf");
  for (std::size_t m = 0; m < in.machines.size(); ++m) {
    if (m % each == 0) leaves.push_back(add_switch(in.data, fmt::format("leaf{}", leaves.size())));
    for (const NetworkPort& port : in.machines[m]) plug(in, port, leaves.back());
  }
  join_leaves(in, leaves, leaf_GBps);
}

/// The n-th NICs of some machines at one leaf, and all leaves at all spines.
void join_fat_tree(const Joining& in) {
  const std::size_t each = nodes_per_leaf(in);
  const MachinePorts& first = in.machines.front();
  std::vector<NodeId> leaves;
  check_ports(in, each + static_cast<std::size_t>(in.value(kSpines)), "a leaf");
  double leaf_GBps = 0;
  for (std::size_t pod = 0; pod < in.machines.size() / each; ++pod) {
    for (std::size_t rail = 0; rail < first.size(); ++rail) {
      leaves.push_back(add_switch(in.data, fmt::format("pod{}rail{}", pod, rail)));
      leaf_GBps = std::max(leaf_GBps, first[rail].GBps * static_cast<double>(each));
      for (std::size_t m = pod * each; m < (pod + 1) * each; ++m)
        plug(in, in.machines[m][rail], leaves.back());
    }
  }
  join_leaves(in, leaves, leaf_GBps);
}

struct Network {
  const char* name;
  const char* help;
  std::vector<Parameter> parameters;
  void (*join)(const Joining& in);
};

const std::vector<Network>& networks() {
  static const std::vector<Network> all{
      {"rails", "a switch for the n-th NICs of all machines", {kPorts}, join_rails},
      {"leaf_spine",
       "all NICs of a machine at one leaf, the leaves joined by spines",
       {kNodesPerLeaf, kSpines, kOversubscription, kPorts},
       join_leaf_spine},
      {"fat_tree",
       "a leaf for the n-th NICs of some machines, all leaves joined by spines",
       {kNodesPerLeaf, kSpines, kOversubscription, kPorts},
       join_fat_tree}};
  return all;
}

const Network& find_network(const std::string& name) {
  std::vector<std::string> names;
  for (const Network& network : networks()) {
    if (network.name == name) return network;
    names.emplace_back(network.name);
  }
  throw Error(ExitCode::usage,
              fmt::format("--network is '{}'{}; there are {}", name, did_you_mean(name, names), join(names)));
}

Values values_of(const Network& network, const std::string& text) {
  Values values;
  std::vector<std::string> names;
  for (const Parameter& parameter : network.parameters) {
    values[parameter.name] = parameter.default_value;
    names.emplace_back(parameter.name);
  }
  for (std::size_t from = 0; !text.empty() && from <= text.size();) {
    const std::size_t end = std::min(text.find(',', from), text.size());
    const std::string word = text.substr(from, end - from);
    from = end + 1;
    const std::string name = word.substr(0, word.find('='));
    const auto known = std::ranges::find(network.parameters, name, &Parameter::name);
    if (known == network.parameters.end() || name.size() == word.size()) {
      throw Error(ExitCode::usage, fmt::format("--network {} has '{}'; write NAME=VALUE with one of {}{}",
                                               network.name, word, join(names), did_you_mean(name, names)));
    }
    const double value = parse_number(word.substr(name.size() + 1), fmt::format("{} of --network", name));
    const bool is_whole =
        name == kOversubscription.name || value == static_cast<double>(static_cast<long long>(value));
    if (value < known->least || value > known->most || !is_whole) {
      refuse_value(fmt::format("{} of --network", name), word.substr(name.size() + 1),
                   fmt::format("{} from {} to {}", name == kOversubscription.name ? "a number" : "whole,",
                               known->least, known->most));
    }
    values[name] = value;
  }
  return values;
}

/// Of each host its own. Throws where hosts differ.
std::vector<MachinePorts> ports_by_host(const Machine& machine, const std::vector<NetworkPort>& ports) {
  std::map<int, MachinePorts> by_host;
  for (const NetworkPort& port : ports) by_host[port.host].push_back(port);
  std::vector<MachinePorts> hosts;
  for (auto& [host, of_host] : by_host) {
    hosts.push_back(std::move(of_host));
    if (hosts.back().size() == hosts.front().size()) continue;
    throw Error(ExitCode::bad_data,
                fmt::format("{}: host {} has {} ways into a network, and another has {}; a network "
                            "here joins hosts that are alike",
                            machine.name, host, hosts.back().size(), hosts.front().size()));
  }
  return hosts;
}

}  // namespace

std::string networks_help() {
  std::string help;
  for (const Network& network : networks()) {
    help += fmt::format("{}{} ({}", help.empty() ? "" : "; ", network.name, network.help);
    for (const Parameter& p : network.parameters)
      help += fmt::format("; {}={}: {}", p.name, p.default_value, p.help);
    help += ")";
  }
  return help;
}

Topology compose(const Machine& machine, int nodes, const std::string& network) {
  const std::string name = network.substr(0, network.find(':'));
  const Network& kind = find_network(name);
  const Values values = values_of(kind, network.size() > name.size() ? network.substr(name.size() + 1) : "");
  if (nodes < 1 || nodes > kMostNodes)
    refuse_value("--nodes", std::to_string(nodes), fmt::format("from 1 to {}", kMostNodes));
  if (machine.ports.empty()) {
    throw Error(ExitCode::bad_data,
                fmt::format("{} has no NIC that a network could join; take a dump of NCCL that has "
                            "them (elements nic and net)",
                            machine.name));
  }
  TopologyData data{.name = fmt::format("{}-{}-{}", machine.name, nodes, name),
                    .source = fmt::format("{} x {} by {}; {}", nodes, machine.name, network, machine.source)};
  std::vector<MachinePorts> machines;
  for (int n = 0; n < nodes; ++n) {
    for (MachinePorts& host : ports_by_host(machine, add_machine(machine, n, true, data)))
      machines.push_back(std::move(host));
  }
  kind.join({data, machines, values});
  return Topology(std::move(data));
}

}  // namespace rondo
