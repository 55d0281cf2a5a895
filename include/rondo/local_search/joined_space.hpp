#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "rondo/decomp/free_group.hpp"
#include "rondo/local_search/transfer_plan.hpp"

namespace rondo {

/// What joined plans consist of: hops and chunks up to a group of automorphisms that acts freely, all of
/// which apply to each transfer at the same time. A plan has one transfer of each orbit, over the hop that
/// represents the orbit of its hop, with the chunks that go over that one. A link that the representatives
/// keep busy is busy with all links of its orbit, each with one image; so its representative stands for them.
/// Whether a GPU has a chunk is the same for all images of the two: a pair. With the trivial group a plan has
/// all transfers, and every chunk and GPU are a pair.
class JoinedSpace {
 public:
  /// `whole` has to be of a topology that outlives it, with demand of one source each.
  explicit JoinedSpace(const PlanSpace& whole);
  /// Adds to the hops of `whole` their images. Nothing where the group does not keep the demand, or images
  /// are more than kMostImages.
  static std::optional<JoinedSpace> up_to(const FreeGroup& group, PlanSpace whole);
  static constexpr double kMostImages = 2e7;  ///< of deliveries in one chunk a contribution

  /// The same for the same contributions of other bytes, in another number of chunks.
  JoinedSpace with_demand(Demand demand) const;

  const Topology& topology() const { return *whole_.topology; }
  const Demand& demand() const { return whole_.demand; }
  int concurrency() const { return whole_.concurrency; }
  const FreeGroup& group() const { return group_; }
  std::size_t num_automorphisms() const { return group_.order(); }

  /// A hop over the links that stand for its own.
  const Hop& hop(int h) const { return over_representatives_[static_cast<std::size_t>(h)]; }
  /// The same over its own links.
  const Hop& crossed(int h) const { return whole_.hops[static_cast<std::size_t>(h)]; }
  std::size_t num_hops() const { return whole_.hops.size(); }
  /// Whose image it is, under which element.
  struct HopPlace {
    int representative;  ///< -1: two of its links are of one orbit, so that its images would meet
    int element;
  };
  HopPlace place_of_hop(int h) const { return hop_place_[static_cast<std::size_t>(h)]; }
  struct HopImage {
    int hop;
    GpuId src;
    GpuId dst;
  };
  /// By element.
  const std::vector<HopImage>& images_of_hop(int representative) const {
    return hop_images_[static_cast<std::size_t>(representative)];
  }

  ChunkId image(ChunkId c, int element) const {
    const auto each = static_cast<std::size_t>(whole_.demand.chunks_per_contribution());
    const std::size_t part = c.index() / each;
    return ChunkId{images_[static_cast<std::size_t>(element) * num_contributions() + part] * each +
                   c.index() % each};
  }
  /// The element that takes one chunk to another; -1: none does.
  int element_between(ChunkId from, ChunkId to) const {
    const Place there = place(to);
    const Place here = place(from);
    return there.representative == here.representative
               ? group_.product(there.element, group_.inverse(here.element))
               : -1;
  }

  std::size_t num_pairs() const { return whole_.demand.num_chunks() * group_.num_gpu_orbits(); }
  std::size_t pair(ChunkId c, GpuId g) const {
    const FreeGroup::Place place = group_.place(g);
    return image(c, group_.inverse(place.element)).index() * group_.num_gpu_orbits() +
           static_cast<std::size_t>(place.orbit);
  }

 private:
  JoinedSpace(PlanSpace whole, FreeGroup group) : whole_(std::move(whole)), group_(std::move(group)) {}
  /// Whose image a chunk is.
  struct Place {
    std::size_t representative;
    int element;
  };
  const Place& place(ChunkId c) const { return places_[c.index()]; }
  std::size_t num_contributions() const { return whole_.demand.contributions().size(); }
  bool find_images();
  void place_chunks();
  void place_hops();

  PlanSpace whole_;
  FreeGroup group_;
  std::vector<Hop> over_representatives_;
  std::vector<HopPlace> hop_place_;
  std::vector<std::vector<HopImage>> hop_images_;  ///< (hop, element); none where it represents no orbit
  std::vector<std::size_t> images_;                ///< of contributions: (element, contribution)
  std::vector<Place> places_;                      ///< of chunks
};

}  // namespace rondo
