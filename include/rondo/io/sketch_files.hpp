#pragma once

#include <string>
#include <vector>

#include "rondo/core/sketch.hpp"
#include "rondo/io/json_files.hpp"

/// TACCL's inputs (FORMATS.md 7): communication sketches and profiles of nodes.
namespace rondo {

/// For a fabric of `gpus` GPUs. Throws Error(bad_data) with field,
/// value and remedy for what is unknown, out of range or contradicts itself.
Sketch sketch_from_json(const Json& json, int gpus);

/// Its nnodes. Throws Error(bad_data).
int nodes_of_sketch(const Json& json);

/// A profile of a node: what a message costs and how long a chunk takes, for each kind of link.
struct NodeProfile {
  std::string name;
  int gpus = 0;
  int nics = 0;      ///< 0: the node has no network
  double alpha = 0;  ///< of a message within the node
  double remote_alpha = 0;
  double remote_beta = 0;
  struct Pair {
    int src;
    int dst;
    int links;
    double beta;
  };
  std::vector<Pair> pairs = {};                      ///< directly joined; none: all behind one switch
  std::optional<double> switch_beta = std::nullopt;  ///< of a GPU's link to the switch
};

/// Throws Error(bad_data) as sketch_from_json().
NodeProfile profile_from_json(const Json& json);

struct ProfileUse {
  int nodes = 1;
  double chunk_bytes = 1 << 20;  ///< that a beta is the time of
  double unit_us = 1;            ///< of the profile's times
  /// Switches that the sketch lists k times are k switches: what they join is k times as fast.
  const Sketch* sketch = nullptr;
};

/// `nodes` of such a node, with message costs. A NIC is shared by equally many GPUs in a row; NICs of a node
/// reach those of all others through a switch of the node's own. Throws Error(bad_data) where several nodes
/// have no NIC.
Topology topology_of(const NodeProfile& profile, const ProfileUse& use);

}  // namespace rondo
