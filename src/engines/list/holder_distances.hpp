#pragma once

#include <cstdint>
#include <vector>

#include "lifted_hops.hpp"

namespace rondo {

/// How far each GPU is from the nearest current or promised holder of each chunk, up to translation. Chunks
/// are numbered as LiftedScheduler does: those of q are q * order + e, as seen from element 0 of an orbit.
class HolderDistances {
 public:
  /// A holder is nearer than a hop takes below this share of it.
  static constexpr double kNearer = 1 - 1e-5;

  /// Of relays of chunks of `bytes`. Distances are compared with what hops take: unless `all_count`, whoever
  /// is as far from a new holder as his longest hop takes is left out, and there is less to do for each
  /// holder.
  HolderDistances(const Translations& translations, const LiftedHops& hops, double bytes,
                  std::size_t num_chunks, bool all_count);

  /// Element 0 of `orbit` holds `chunk` from now on, and all others of the orbit their translations of it.
  void add_holder(int orbit, std::uint32_t chunk);

  /// From the nearest holder to element 0 of `orbit`, which is none; infinity where it is left out. Only
  /// where nearest_other_us() is finite.
  float near_us(int orbit, std::uint32_t chunk) const {
    return near_us_[static_cast<std::size_t>(chunk) * num_orbits_ + static_cast<std::size_t>(orbit)];
  }
  /// From the nearest other GPU to one of `orbit`; infinity where it is left out, 0 where all count.
  float nearest_other_us(int orbit) const { return nearest_other_us_[static_cast<std::size_t>(orbit)]; }
  /// Of the GPUs' distances for the chunks of q; only where all count.
  float farthest_us(std::size_t q) const;
  /// The greatest distance between two GPUs.
  float diameter_us() const { return diameter_us_; }
  /// From element 0 of orbit a to element -e of orbit b.
  float relay_us(std::size_t a, std::size_t e, std::size_t b) const {
    return relay_us_[(a * translations_.order() + e) * num_orbits_ + b];
  }

 private:
  struct Neighbour {
    int shift;
    int orbit;
    float distance_us;
  };
  void find_neighbours(const LiftedHops& hops, double bytes);

  const Translations& translations_;
  std::size_t num_orbits_;
  std::vector<float> relay_us_;
  float diameter_us_ = 0;
  std::vector<float> near_us_;  ///< (chunk, orbit); empty where nobody is near enough to count
  bool all_count_;
  std::vector<std::vector<Neighbour>> neighbours_;  ///< per orbit: whom a holder there may bring nearer
  std::vector<float> nearest_other_us_;             ///< per orbit
};

}  // namespace rondo
