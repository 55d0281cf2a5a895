#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rondo/core/topology.hpp"

/// Communication sketches (TACCL, NSDI 2023): what a person lets a schedule use.
namespace rondo {

/// Numbers of GPUs within a node (chassis) are local: 0 to GPUs of a node - 1.
struct Sketch {
  enum class Peers { few, many, any };  ///< uc-min, uc-max, free
  /// Of the links within a node: as they come, behind switches, or with an even or uneven load (minmax,
  /// maxmin).
  enum class Local { none, switches, minmax, maxmin };

  int nodes = 1;
  Local local = Local::none;                    ///< intranode_sketch.strategy
  std::vector<std::vector<int>> switches = {};  ///< GPUs that a switch joins; listed k times: k switches
  std::vector<Peers> peers = {};                ///< one a switch
  std::optional<std::map<int, std::vector<int>>> conn = std::nullopt;  ///< who sends to whom in other nodes
  /// By sender: for whose data it is the way out of the node. Empty: any sender is for all.
  std::map<int, std::vector<int>> relays = {};
  bool own_data_first = false;  ///< enforce_ordering: a sender's own data go before what it relays
  std::map<int, int> bandwidth_parts =
      {};  ///< beta_split: a sender takes 1 / n of its links into the network
  struct Turn {
    int offset;
    int group;
  };
  std::vector<Turn> symmetry = {};  ///< GPU x of a group goes to (x + offset) mod group within it
  int chunks = 1;  ///< input_chunkup: of a contribution; of AllReduce, of each GPU's part of it
  std::optional<double> input_bytes = std::nullopt;  ///< for which a profile's figures are

  /// What in it says more than which links there are, by the names of its fields.
  std::vector<std::string> beyond_links() const;
};

/// GPUs of each node: those of one chassis, in their order; without chassis all are one node. Throws
/// Error(bad_data) unless there are `nodes` of equal size.
std::vector<std::vector<GpuId>> gpus_of_nodes(const Topology& topology, int nodes);

/// The fabric of which the sketch leaves what it lets be used. Between nodes only the senders that it names
/// reach the receivers that it names: the switches that lead to other nodes stand once for every node and
/// every kind of sender, and what several of these share has the bandwidth of before, together. Throws
/// Error(bad_data), naming field and value, where sketch and topology contradict each other.
Topology restricted(const Topology& topology, const Sketch& sketch);

/// Image of each GPU.
std::vector<GpuId> image_of(std::size_t num_gpus, const Sketch::Turn& turn);

/// Throws Error(bad_data), naming two pairs of GPUs that differ, where a turn of the sketch does not keep
/// what joins the GPUs of a group.
void check_symmetry(const Topology& topology, const Sketch& sketch);

/// Throws Error(bad_data) for what a sketch says of a profile, where there is a fabric with figures of its
/// own.
void check_for_fabric(const Sketch& sketch);

}  // namespace rondo
