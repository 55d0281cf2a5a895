#pragma once

#include <cstdint>
#include <vector>

#include "rondo/core/topology.hpp"
#include "rondo/decomp/orbits.hpp"

namespace rondo {

/// A commutative group of automorphisms of a topology in which only the identity keeps any GPU or link where
/// it is: the turns of a torus, of the chassis around a star, of the groups of a dragonfly, the reflections
/// of a hypercube or of a mesh of even sides. What is decided for one GPU of each orbit holds, moved along,
/// for all.
///
/// GPU g is the `element` of the group applied to the first GPU of its `orbit`; so are links. Element 0 is
/// the identity.
class Translations {
 public:
  struct Place {
    int orbit;
    int element;
  };

  /// The identity alone: every GPU and link is an orbit.
  static Translations identity(const Topology& topology);

  /// The largest group found among the turns and reflections of single digits of the GPU numbers, written in
  /// any mixed radix.
  /// Each turn is checked by is_automorphism, so a group that is found is one; topologies numbered otherwise,
  /// and those with shared bandwidth, give the identity alone. What find_rotations lists element by element
  /// is here a table of numbers: groups of thousands of elements, commutative ones only.
  static Translations find(const Topology& topology, const DemandPattern& pattern);

  std::size_t order() const { return order_; }
  std::size_t num_gpu_orbits() const { return gpus_.size() / order_; }
  std::size_t num_link_orbits() const { return links_.size() / order_; }

  Place place(GpuId g) const { return gpu_place_[g.index()]; }
  GpuId gpu(int orbit, int element) const { return GpuId{gpus_[at(orbit, element)]}; }
  Place place(LinkId l) const { return link_place_[l.index()]; }
  LinkId image(LinkId l, int element) const {
    const Place from = place(l);
    return LinkId{links_[at(from.orbit, plus(from.element, element))]};
  }

  int plus(int a, int b) const { return minus(a, minus(0, b)); }
  int minus(int a, int b) const {
    return minus_[static_cast<std::size_t>(b) * order_ + static_cast<std::size_t>(a)];
  }
  /// Per element a: a - b.
  const std::uint16_t* all_minus(int b) const { return minus_.data() + static_cast<std::size_t>(b) * order_; }

 private:
  struct Turn {
    int period;
    Permutation images;
  };
  Translations() = default;
  /// Whether the turns act as the product of their cycles, moving every GPU and link.
  bool make(const Topology& topology, const std::vector<Turn>& turns);
  friend class TurnSearch;

  std::size_t at(int orbit, int element) const {
    return static_cast<std::size_t>(orbit) * order_ + static_cast<std::size_t>(element);
  }

  std::size_t order_ = 1;
  std::vector<int> gpus_;   ///< (orbit, element)
  std::vector<int> links_;  ///< (orbit, element)
  std::vector<Place> gpu_place_;
  std::vector<Place> link_place_;
  std::vector<std::uint16_t> minus_;  ///< (b, a): a - b
};

}  // namespace rondo
