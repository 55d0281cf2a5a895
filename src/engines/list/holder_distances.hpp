#pragma once

#include <cstdint>
#include <vector>

#include "orbit_hops.hpp"

namespace rondo {

/// How far each GPU is from the nearest current or promised holder of each chunk, for one GPU of each orbit.
/// Chunk q * order + e is chunk q of element e as the representative of an orbit sees it: what another GPU of
/// the orbit, element x, sees as (q, e), is a chunk of element product(x, e).
class HolderDistances {
 public:
  /// Of relays of chunks of `bytes`. Distances are compared with the durations of hops: unless `all_count`,
  /// GPUs that are as far from a new holder as their longest hop takes are left out, which is less work for
  /// each holder.
  HolderDistances(const FreeGroup& group, const OrbitHops& hops, double bytes, std::size_t num_chunks,
                  bool all_count);

  /// The representative of `orbit` holds `chunk` from now on, and all others of the orbit its images.
  void add_holder(int orbit, std::uint32_t chunk);

  /// From the nearest holder to the representative of `orbit`, which is none; infinity where it is left out.
  /// Only where nearest_other_us() is finite.
  float near_us(int orbit, std::uint32_t chunk) const {
    const std::size_t e = chunk % group_.order();
    const auto seen = static_cast<std::size_t>(group_.inverse(static_cast<int>(e)));
    return near_us_[(chunk - e + seen) * num_orbits_ + static_cast<std::size_t>(orbit)];
  }
  /// From the nearest other GPU to one of `orbit`; infinity where it is left out, 0 where all count.
  float nearest_other_us(int orbit) const { return nearest_other_us_[static_cast<std::size_t>(orbit)]; }
  /// Of the GPUs' distances for the chunks of q; only where all count.
  float farthest_us(std::size_t q) const;
  /// The greatest distance between two GPUs.
  float diameter_us() const { return diameter_us_; }
  /// From the representative of orbit a to element e of orbit b.
  float relay_us(std::size_t a, std::size_t e, std::size_t b) const {
    return relay_us_[(a * group_.order() + e) * num_orbits_ + b];
  }

 private:
  struct Neighbour {
    int element;
    int orbit;
    float distance_us;
  };
  void find_neighbours(const OrbitHops& hops, double bytes);

  const FreeGroup& group_;
  std::size_t num_orbits_;
  std::vector<float> relay_us_;
  float diameter_us_ = 0;
  /// (q, inverse of e, orbit) for chunk (q, e); empty where nobody is near enough to count. The inverse is
  /// the GPU as the chunk's origin sees it; so numbered, a new holder's row is read in order.
  std::vector<float> near_us_;
  bool all_count_;
  std::vector<std::vector<Neighbour>> neighbours_;  ///< per orbit: GPUs that a holder there may be nearest to
  std::vector<float> nearest_other_us_;             ///< per orbit
};

}  // namespace rondo
