#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "link_rates.hpp"
#include "rondo/core/error.hpp"
#include "rondo/io/machine.hpp"

namespace rondo {
namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();
constexpr int kBetweenCpus = 1000;  ///< as far as that many bridges

std::size_t slot(int place) {
  return static_cast<std::size_t>(place);
}

/// Whether NVLink or Infinity Fabric joins all GPUs: then these use PCIe to reach NICs alone.
bool is_joined_by_nvlink(const Machine& machine) {
  std::vector<int> root(machine.places.size() + 1);  // the last one is the switch
  std::iota(root.begin(), root.end(), 0);
  const auto find = [&](int place) {
    while (root[slot(place)] != place) place = root[slot(place)] = root[slot(root[slot(place)])];
    return place;
  };
  for (const Machine::NvLink& link : machine.nvlinks)
    root[slot(find(link.from))] = find(link.to.value_or(static_cast<int>(machine.places.size())));
  return std::ranges::all_of(machine.gpus, [&](int gpu) { return find(gpu) == find(machine.gpus.front()); });
}

/// A wire in one direction: from its end a to b, or back.
using WireWay = std::pair<std::size_t, bool>;

struct Way {
  int distance = std::numeric_limits<int>::max();
  double GBps = 0;
  std::vector<WireWay> wires;
};

/// From one place to all others through bridges and CPUs, over the fewest of them and then over the widest.
class Ways {
 public:
  Ways(const Machine& machine, int from) : machine_(machine), ways_(machine.places.size()) {
    ways_[slot(from)] = {0, kUnlimited, {}};
    std::set<std::pair<int, int>> open{{0, from}};  // (distance, place)
    while (!open.empty()) {
      const int place = open.begin()->second;
      open.erase(open.begin());
      const Machine::PlaceKind kind = machine.places[slot(place)].kind;
      const bool passes = kind == Machine::PlaceKind::bridge || kind == Machine::PlaceKind::cpu;
      if (place != from && !passes) continue;
      for (std::size_t w = 0; w < machine.wires.size(); ++w) {
        const Machine::Wire& wire = machine.wires[w];
        if (wire.a == place) try_wire(w, true, wire.b, open);
        if (wire.b == place) try_wire(w, false, wire.a, open);
      }
    }
  }
  const Way& to(int place) const { return ways_[slot(place)]; }

 private:
  void try_wire(std::size_t w, bool forwards, int next, std::set<std::pair<int, int>>& open) {
    const Machine::Wire& wire = machine_.wires[w];
    const Way& before = ways_[slot(forwards ? wire.a : wire.b)];
    const int distance = before.distance + (wire.between_cpus ? kBetweenCpus : 1);
    const double GBps = std::min(before.GBps, wire.GBps);
    Way& way = ways_[slot(next)];
    if (distance > way.distance || (distance == way.distance && GBps <= way.GBps)) return;
    open.erase({way.distance, next});
    way = {distance, GBps, before.wires};
    way.wires.emplace_back(w, forwards);
    open.insert({distance, next});
  }

  const Machine& machine_;
  std::vector<Way> ways_;
};

/// Adds one machine to the data of a topology.
class Builder {
 public:
  Builder(const Machine& machine, int chassis, TopologyData& data)
      : machine_(machine), chassis_(chassis), data_(data) {
    for (const Machine::Place& place : machine.places) many_hosts_ = many_hosts_ || place.host > 0;
    for (const int gpu : machine.gpus) add_node(gpu, NodeKind::gpu);
  }

  void add_nvlinks() {
    std::map<std::pair<int, int>, double> GBps;  // several to the parts of one switch count as one
    const int the_switch = -1;
    for (const Machine::NvLink& link : machine_.nvlinks)
      GBps[{link.from, link.to.value_or(the_switch)}] += link.GBps;
    for (const auto& [ends, sum] : GBps) {
      const NodeId from = node_of_.at(ends.first);
      if (ends.second != the_switch) {
        add_link(from, node_of_.at(ends.second), sum, kNvLinkUs);
        continue;
      }
      if (!node_of_.contains(the_switch)) add_switch(the_switch, fmt::format("c{}nvswitch", chassis_));
      add_link(from, node_of_.at(the_switch), sum, kNvLinkUs / 2);
      add_link(node_of_.at(the_switch), from, sum, kNvLinkUs / 2);
    }
  }

  /// The buses as they are; NICs are part of them.
  std::vector<NetworkPort> add_buses(bool networked) {
    const std::vector<bool> used = used_places(networked);
    for (std::size_t p = 0; p < machine_.places.size(); ++p) {
      if (used[p] && machine_.places[p].kind != Machine::PlaceKind::gpu)
        add_node(static_cast<int>(p), NodeKind::switch_);
    }
    for (const Machine::Wire& wire : machine_.wires) {
      if (!used[slot(wire.a)] || !used[slot(wire.b)]) continue;
      const double latency_us = kPcieUs / 2 * (is_end(wire.a) + is_end(wire.b));
      add_link(node_of_.at(wire.a), node_of_.at(wire.b), wire.GBps, latency_us);
      add_link(node_of_.at(wire.b), node_of_.at(wire.a), wire.GBps, latency_us);
    }
    std::vector<NetworkPort> ports;
    for (const Machine::Port& port : machine_.ports) {
      if (networked) ports.push_back(port_at(port, node_of_.at(port.nic), node_of_.at(port.nic)));
    }
    return ports;
  }

  /// A link from each GPU to each of the NICs that are nearest to it, and back; what they share of the buses
  /// is shared bandwidth.
  std::vector<NetworkPort> add_nearest_nics() {
    std::map<WireWay, std::vector<LinkId>> users;
    std::map<int, std::pair<NodeId, NodeId>> nodes;  // of a NIC: out, in
    for (const int gpu : machine_.gpus) {
      const Ways ways(machine_, gpu);
      int nearest = std::numeric_limits<int>::max();
      for (const Machine::Port& port : machine_.ports)
        nearest = std::min(nearest, ways.to(port.nic).distance);
      if (nearest == std::numeric_limits<int>::max()) {
        throw Error(ExitCode::bad_data,
                    fmt::format("{}: no bus of known bandwidth leads from GPU {} to a NIC; give cpu its arch "
                                "and vendor, and pci their link_speed and link_width",
                                machine_.name, machine_.places[slot(gpu)].name));
      }
      std::set<int> done;
      for (const Machine::Port& port : machine_.ports) {
        const Way& way = ways.to(port.nic);
        if (way.distance != nearest || !done.insert(port.nic).second) continue;
        if (!nodes.contains(port.nic)) nodes[port.nic] = add_nic(port.nic);
        const auto [out, in] = nodes.at(port.nic);
        add_link(node_of_.at(gpu), out, way.GBps, kPcieUs / 2);
        for (const WireWay& wire : way.wires) users[wire].push_back(last_link());
        add_link(in, node_of_.at(gpu), way.GBps, kPcieUs / 2);
        for (const auto& [wire, forwards] : way.wires) users[{wire, !forwards}].push_back(last_link());
      }
    }
    add_groups(users);
    std::vector<NetworkPort> ports;
    for (const Machine::Port& port : machine_.ports) {
      if (nodes.contains(port.nic))
        ports.push_back(port_at(port, nodes.at(port.nic).first, nodes.at(port.nic).second));
    }
    return ports;
  }

 private:
  /// "c0g5", "c0nic1"; of several hosts "c0h3nic1".
  std::string name_of(int place) const {
    const Machine::Place& of = machine_.places[slot(place)];
    const bool with_host = many_hosts_ && of.kind != Machine::PlaceKind::gpu;
    return fmt::format("c{}{}{}", chassis_, with_host ? fmt::format("h{}", of.host) : "", of.name);
  }
  bool is_end(int place) const {
    const Machine::PlaceKind kind = machine_.places[slot(place)].kind;
    return kind == Machine::PlaceKind::gpu || kind == Machine::PlaceKind::nic;
  }
  LinkId last_link() const { return LinkId(static_cast<std::int32_t>(data_.links.size() - 1)); }

  void add_node(int place, NodeKind kind) {
    if (kind == NodeKind::switch_) return add_switch(place, name_of(place));
    node_of_[place] = NodeId(static_cast<std::int32_t>(data_.nodes.size()));
    data_.nodes.push_back({.kind = kind, .chassis = chassis_, .name = name_of(place)});
  }
  /// Neither copies nor adds: no program of a GPU that Rondo writes could ask it to.
  void add_switch(int place, const std::string& name) {
    node_of_[place] = NodeId(static_cast<std::int32_t>(data_.nodes.size()));
    data_.nodes.push_back({.kind = NodeKind::switch_, .chassis = chassis_, .name = name, .multicast = false});
  }
  /// Two nodes: nothing goes from one GPU of a machine to another through a NIC.
  std::pair<NodeId, NodeId> add_nic(int place) {
    add_switch(place, name_of(place) + ".out");
    const NodeId out = node_of_.at(place);
    add_switch(place, name_of(place) + ".in");
    return {out, node_of_.at(place)};
  }
  void add_link(NodeId from, NodeId to, double GBps, double latency_us) {
    data_.links.push_back({.src = from, .dst = to, .bandwidth_GBps = GBps, .latency_us = latency_us});
  }

  NetworkPort port_at(const Machine::Port& port, NodeId out, NodeId in) const {
    if (port.GBps <= 0) {
      throw Error(
          ExitCode::bad_data,
          fmt::format("{}: the speed of this net is not known; write speed=\"...\" in Mb/s", port.where));
    }
    return {machine_.places[slot(port.nic)].host, out, in, port.GBps,
            port.latency_us > 0 ? port.latency_us / 2 : kNicUs};
  }

  /// Without what leads to no GPU and to no NIC that counts.
  std::vector<bool> used_places(bool networked) const {
    std::vector<int> degree(machine_.places.size(), 0);
    std::vector<bool> used(machine_.places.size(), true);
    const auto stays = [&](std::size_t p) {
      const Machine::PlaceKind kind = machine_.places[p].kind;
      if (kind == Machine::PlaceKind::gpu) return node_of_.contains(static_cast<int>(p));
      return kind == Machine::PlaceKind::nic ? networked : degree[p] > 1;
    };
    for (bool changed = true; changed;) {
      changed = false;
      std::ranges::fill(degree, 0);
      for (const Machine::Wire& wire : machine_.wires) {
        if (!used[slot(wire.a)] || !used[slot(wire.b)]) continue;
        ++degree[slot(wire.a)];
        ++degree[slot(wire.b)];
      }
      for (std::size_t p = 0; p < used.size(); ++p) {
        if (!used[p] || stays(p)) continue;
        used[p] = false;
        changed = true;
      }
    }
    return used;
  }

  /// Of every way of a wire that carries less than its links together; the narrowest for the same links.
  void add_groups(const std::map<WireWay, std::vector<LinkId>>& users) {
    std::map<std::vector<LinkId>, SharedBandwidth> groups;
    for (const auto& [way, links] : users) {
      const Machine::Wire& wire = machine_.wires[way.first];
      double sum = 0;
      for (const LinkId link : links) sum += data_.links[link.index()].bandwidth_GBps;
      if (links.size() < 2 || sum <= wire.GBps) continue;
      const int from = way.second ? wire.a : wire.b;
      const int to = way.second ? wire.b : wire.a;
      SharedBandwidth group{fmt::format("{} to {}", name_of(from), name_of(to)), links, wire.GBps};
      const auto [entry, is_new] = groups.insert({links, group});
      if (!is_new && group.bandwidth_GBps < entry->second.bandwidth_GBps) entry->second = std::move(group);
    }
    for (auto& [links, group] : groups) data_.shared_bandwidth.push_back(std::move(group));
  }

  const Machine& machine_;
  int chassis_;
  bool many_hosts_ = false;
  TopologyData& data_;
  std::map<int, NodeId> node_of_ = {};  ///< of places; -1: the switch of NVLinks
};

}  // namespace

std::vector<NetworkPort> add_machine(const Machine& machine, int chassis, bool networked,
                                     TopologyData& data) {
  Builder builder(machine, chassis, data);
  builder.add_nvlinks();
  if (!is_joined_by_nvlink(machine)) return builder.add_buses(networked);
  return networked ? builder.add_nearest_nics() : std::vector<NetworkPort>{};
}

Topology topology_of(const Machine& machine) {
  TopologyData data{.name = machine.name, .source = machine.source};
  add_machine(machine, 0, false, data);
  return Topology(std::move(data));
}

}  // namespace rondo
