#pragma once

#include <span>
#include <vector>

#include "rondo/core/hops.hpp"
#include "rondo/decomp/free_group.hpp"

namespace rondo {

/// The representative of an orbit of hops: from the representative of one orbit of GPUs to element `shift` of
/// another.
struct OrbitHop {
  int from = 0;
  int to = 0;
  int shift = 0;
  int back = 0;  ///< inverse of `shift`: the element of the sender when the receiver is the representative
  Hop hop;
};

/// The hops of a topology, one of each orbit under a free group.
class OrbitHops {
 public:
  /// Leaves out hops that use two links of one orbit: their images would occupy each other's links.
  /// `max_hops`: about how many there may be for all orbits together; beyond it, peers are thinned out
  /// (hops_from).
  OrbitHops(const Topology& topology, const FreeGroup& group, std::size_t max_hops);

  const std::vector<OrbitHop>& hops() const { return hops_; }
  const OrbitHop& hop(int h) const { return hops_[static_cast<std::size_t>(h)]; }
  /// Hops from the representative of `orbit`.
  std::span<const int> out_of(int orbit) const { return out_[static_cast<std::size_t>(orbit)]; }
  /// Hops whose images lead to the representative of `orbit`.
  std::span<const int> into(int orbit) const { return in_[static_cast<std::size_t>(orbit)]; }

  /// Whether every GPU reaches every other.
  bool reach_all() const;

  /// Time of the fastest relay over GPUs for `bytes` from the representative of orbit a to element e of orbit
  /// b, at (a, e, b); infinity where there is none.
  std::vector<float> relay_us(double bytes) const;

 private:
  const FreeGroup& group_;
  std::vector<OrbitHop> hops_;
  std::vector<std::vector<int>> out_;
  std::vector<std::vector<int>> in_;
};

}  // namespace rondo
