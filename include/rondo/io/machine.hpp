#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rondo/core/topology.hpp"

/// Machines as they describe themselves: NCCL's topology XML and the matrix of nvidia-smi (FORMATS.md 6).
namespace rondo {

/// GPUs, NICs, and the buses between them; one machine, or several that NVLink joins.
struct Machine {
  enum class PlaceKind { gpu, bridge, cpu, nic };
  struct Place {
    PlaceKind kind;
    std::string name;  ///< within the machine: "g0", "cpu1", "pci 0000:16:00.0", "nic0"
    int host = 0;
  };
  /// Both ways, each with this bandwidth.
  struct Wire {
    int a = 0;
    int b = 0;
    double GBps = 0;
    bool between_cpus = false;
  };
  struct NvLink {
    int from = 0;                          ///< place of a GPU
    std::optional<int> to = std::nullopt;  ///< of another; absent: the switch, both ways
    double GBps = 0;
  };
  struct Port {
    int nic = 0;            ///< place
    std::string name;       ///< "mlx5_0"
    double GBps = 0;        ///< 0: not told
    double latency_us = 0;  ///< of both ends together; 0: not told
    std::string where;      ///< in the file, for messages
  };

  std::string name;
  std::string source;
  std::vector<Place> places;
  std::vector<Wire> wires;      ///< PCIe, CPU to CPU, C2C
  std::vector<NvLink> nvlinks;  ///< or Infinity Fabric
  std::vector<int> gpus;        ///< places, in the order in which NCCL numbers them
  std::vector<Port> ports;
};

/// One way of a NIC into a network.
struct NetworkPort {
  int host = 0;  ///< of the machine
  NodeId out;    ///< what leaves the machine comes from here
  NodeId in;     ///< what enters it goes here; the same node where NICs are part of the PCIe tree
  double GBps = 0;
  double latency_us = 0;  ///< between the NIC and the network's first switch
};

/// NCCL_TOPO_DUMP_FILE, of NCCL or RCCL. `what` (a file name) stands in messages, with the line. Throws
/// Error(bad_data).
Machine parse_nccl_xml(const std::string& text, const std::string& what);

/// The output of `nvidia-smi -L` (which names the GPUs), then that of `nvidia-smi topo -m`. Throws
/// Error(bad_data).
Machine parse_nvidia_smi(const std::string& text, const std::string& what);

/// Either, by what the text begins with.
Machine parse_machine(const std::string& text, const std::string& what);

/// Adds the machine's nodes, links and groups to `data` as one chassis: names begin with "c0" for chassis 0.
/// With NICs where `networked`. Throws Error(bad_data) for a NIC without a speed. Returns the ways into the
/// network.
std::vector<NetworkPort> add_machine(const Machine& machine, int chassis, bool networked, TopologyData& data);

/// The machine alone, without its NICs. Throws Error(bad_data).
Topology topology_of(const Machine& machine);

/// `nodes` equal machines behind a network: "rails", "leaf_spine:nodes_per_leaf=4,spines=2",
/// "fat_tree:nodes_per_leaf=32,spines=4,oversubscription=2"; parameters have defaults. Throws Error(usage)
/// for a network that the machines do not fit, Error(bad_data) for machines without NICs.
Topology compose(const Machine& machine, int nodes, const std::string& network);

/// The networks of compose() and their parameters, for --help.
std::string networks_help();

}  // namespace rondo
