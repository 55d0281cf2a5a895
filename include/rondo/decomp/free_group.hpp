#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "rondo/core/hops.hpp"
#include "rondo/core/topology.hpp"
#include "rondo/decomp/orbits.hpp"

namespace rondo {

/// A group of automorphisms of a topology that acts freely: only the identity maps a GPU or a link to itself,
/// and no automorphism maps a link to one that it shares bandwidth with. All automorphisms can therefore
/// apply to one transfer at the same time without two images meeting on a link, and a schedule of one
/// representative of each orbit is a schedule of all. Examples: the cyclic shifts of a torus, of the chassis
/// around a star, of the groups of a dragonfly, of the GPUs of all leaves of a fat tree together with its
/// spines; the reflections of a hypercube or of a mesh of even sides.
///
/// GPU g is the image of the first GPU of its `orbit` under its `element`; links alike. Orbits are numbered
/// by their first members, which are their representatives. Element 0 is the identity.
class FreeGroup {
 public:
  static constexpr std::size_t kMaxOrder = 4096;  ///< the table of products takes the square of it

  struct Place {
    int orbit;
    int element;
    friend bool operator==(const Place&, const Place&) = default;
  };

  /// The identity alone: every GPU and link is an orbit.
  static FreeGroup trivial(const Topology& topology);
  /// All products of `generators`, which have to be automorphisms. Nothing where they do not act freely or
  /// are more than kMaxOrder. Elements are numbered as they are found: a cyclic shift of n positions gives
  /// 0 .. n - 1, a further generator of order m the blocks n .. 2n - 1, ..., (m - 1)n .. mn - 1.
  static std::optional<FreeGroup> generated_by(const Topology& topology,
                                               std::span<const Permutation> generators);

  std::size_t order() const { return order_; }
  std::size_t num_gpu_orbits() const { return gpus_.size() / order_; }
  std::size_t num_link_orbits() const { return links_.size() / order_; }

  Place place(GpuId g) const { return gpu_place_[g.index()]; }
  Place place(LinkId l) const { return link_place_[l.index()]; }
  GpuId gpu(int orbit, int element) const { return GpuId{gpus_[at(orbit, element)]}; }
  LinkId link(int orbit, int element) const { return LinkId{links_[at(orbit, element)]}; }
  GpuId image(GpuId g, int element) const { return gpu(place(g).orbit, product(element, place(g).element)); }
  LinkId image(LinkId l, int element) const {
    return link(place(l).orbit, product(element, place(l).element));
  }

  /// The hop over the representatives of its links; nothing where two of them are of one orbit: images of a
  /// transfer over it would meet.
  std::optional<Hop> over_representatives(Hop hop) const;

  /// First b, then a.
  int product(int a, int b) const { return products_of(a)[b]; }
  /// Per element b: product(a, b).
  const std::uint16_t* products_of(int a) const {
    return products_.data() + static_cast<std::size_t>(a) * order_;
  }
  int inverse(int a) const { return inverse_[static_cast<std::size_t>(a)]; }

 private:
  FreeGroup() = default;
  friend class FreeGroupBuilder;

  std::size_t at(int orbit, int element) const {
    return static_cast<std::size_t>(orbit) * order_ + static_cast<std::size_t>(element);
  }

  std::size_t order_ = 1;
  std::vector<int> gpus_;   ///< (orbit, element)
  std::vector<int> links_;  ///< (orbit, element)
  std::vector<Place> gpu_place_;
  std::vector<Place> link_place_;
  std::vector<std::uint16_t> products_;  ///< (a, b)
  std::vector<int> inverse_;
};

/// A group of automorphisms of topology and demand that acts freely; the trivial one where none is found.
/// Every generator is checked by is_automorphism. Looked for are, until one is found:
/// 1. cyclic shifts and reflections of single digits of the GPU numbers, written in any mixed radix: of all
///    combinations the largest group;
/// 2. up to kMaxSearchedGpus GPUs, which takes the whole automorphism group: a cyclic shift of the chassis,
///    with the switches between them fixed; where there are no chassis, of the switches that GPUs hang on;
///    else of the GPUs;
/// 3. where the whole group has at most kMaxListedElements elements: a large subgroup of it.
FreeGroup find_free_group(const Topology& topology, const DemandPattern& pattern);
inline constexpr std::size_t kMaxSearchedGpus = 512;
inline constexpr std::size_t kMaxListedElements = 100'000;

}  // namespace rondo
