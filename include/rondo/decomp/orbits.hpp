#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "rondo/core/collective.hpp"
#include "rondo/core/ids.hpp"
#include "rondo/core/topology.hpp"
#include "rondo/model/flow_orbits.hpp"
#include "rondo/model/formulation.hpp"

/// Symmetry of a topology and a demand. Pure: depends on the problem alone.
namespace rondo {

/// Where a renaming of nodes and links takes each of them.
struct Permutation {
  std::vector<NodeId> node;
  std::vector<LinkId> link;
  friend bool operator==(const Permutation&, const Permutation&) = default;
};

/// First `first`, then `then`.
Permutation composed(const Permutation& first, const Permutation& then);
Permutation inverse(const Permutation& permutation);

/// The automorphism group of a topology with a demand on it: renamings that keep the ends, bandwidth and
/// latency of every link, the kind and figures of every node (names and chassis numbers aside), shared
/// bandwidth, and who needs which data. Orbits are numbered 0, 1, ... by their first members.
struct Symmetry {
  std::vector<Permutation> generators = {};  ///< each one checked by is_automorphism
  std::vector<int> node_orbit = {};          ///< per node
  std::vector<int> link_orbit = {};          ///< per link
  double log10_order = 0;                    ///< of the group, as nauty tells
  bool is_trivial() const { return generators.empty(); }
};

/// What of a demand a renaming of GPUs has to keep, in a form that is short for regular demand: per GPU what
/// it sends to everybody, and single arcs for the rest. Of unicast demand the most frequent kind of pair is
/// left out.
struct DemandPattern {
  struct Arc {
    GpuId origin;
    std::vector<GpuId> destinations;  ///< ascending
    int kind = 0;                     ///< equal for equal data
    friend auto operator<=>(const Arc&, const Arc&) = default;
  };
  std::vector<int> gpu_kind = {};  ///< per GPU: equal where they send the same data to everybody
  std::vector<Arc> arcs = {};      ///< ascending
  /// More arcs than are worth looking at (kMaxPatternEnds): only the identity counts as a symmetry.
  bool irregular = false;
};
inline constexpr std::size_t kMaxPatternEnds = 200'000;
DemandPattern demand_pattern(const Demand& demand);

/// Whether `permutation` is a bijection that keeps everything named above, by comparing all of it.
bool is_automorphism(const Topology& topology, const DemandPattern& pattern, const Permutation& permutation);

/// The group by nauty (McKay, Piperno, "Practical graph isomorphism, II", J. Symbolic Computation 60, 2014).
/// The members keep `label`, one value a node, where it is given. Swaps of parallel links with the same
/// figures are not among them. A generator that fails the check, a topology of more than kMaxSymmetryLinks
/// links and irregular demand give the trivial group.
Symmetry find_symmetry(const Topology& topology, const DemandPattern& pattern,
                       const std::vector<int>& label = {});
Symmetry find_symmetry(const Topology& topology, const Demand& demand);
inline constexpr std::size_t kMaxSymmetryLinks = 400'000;
/// Per pair of nodes, from x nodes + to, its orbit: pairs that some element takes to one another.
std::vector<int> pair_orbits(const Symmetry& symmetry, std::size_t nodes);
/// The identity alone.
Symmetry trivial_symmetry(const Topology& topology);

/// Elements of the group that take `from` to every node of its orbit.
class Transversal {
 public:
  Transversal(const Symmetry& symmetry, NodeId from);
  bool reaches(NodeId to) const { return step_[to.index()] != kUnreached; }
  /// Throws Error(internal) for a node outside the orbit.
  Permutation element(NodeId to) const;

 private:
  static constexpr int kUnreached = -2;
  const Symmetry& symmetry_;
  NodeId from_;
  std::vector<int> step_;       ///< per node: the generator that leads to it, -1 at the start
  std::vector<NodeId> before_;  ///< per node: where that generator is applied
};

/// Which columns and rows of a flow by origin are equal for a flow that is averaged over the group. The
/// program being convex, that loses nothing (Boedi, Herr, Joswig, "Algorithms for highly symmetric linear and
/// integer programs", Math. Programming 137, 2013, section 2). Nothing where the program has more than
/// `most_columns` flows by origin and link even so; that is known before most stabilisers are.
std::optional<FlowOrbits> flow_orbits(const Topology& topology, const Demand& demand,
                                      const DemandPattern& pattern, const Symmetry& symmetry,
                                      std::size_t most_columns = std::numeric_limits<std::size_t>::max());

/// The entries of `origin` in a flow by origin that is known for one origin of each orbit.
std::vector<FlowField::Entry> entries_of(const Topology& topology, const Symmetry& symmetry,
                                         const FlowField& field, GpuId origin);

}  // namespace rondo
