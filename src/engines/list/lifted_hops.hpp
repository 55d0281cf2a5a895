#pragma once

#include <span>
#include <vector>

#include "rondo/core/hops.hpp"
#include "rondo/decomp/translations.hpp"

namespace rondo {

/// One hop of each orbit: from element 0 of an orbit of GPUs to element `shift` of another.
struct LiftedHop {
  int from = 0;
  int to = 0;
  int shift = 0;
  Hop hop;
};

/// The hops of a topology up to translation.
class LiftedHops {
 public:
  /// Leaves out hops that use two links of one orbit: their images would be in each other's way. `max_hops`:
  /// about how many there may be for all orbits together; beyond it, peers are thinned out (hops_from).
  LiftedHops(const Topology& topology, const Translations& translations, std::size_t max_hops);

  const std::vector<LiftedHop>& hops() const { return hops_; }
  const LiftedHop& hop(int h) const { return hops_[static_cast<std::size_t>(h)]; }
  /// From element 0 of `orbit`.
  std::span<const int> out_of(int orbit) const { return out_[static_cast<std::size_t>(orbit)]; }
  /// To element `shift` of `orbit`.
  std::span<const int> into(int orbit) const { return in_[static_cast<std::size_t>(orbit)]; }

  /// Whether every GPU reaches every other.
  bool reach_all() const;

  /// Time of the fastest relay over GPUs for `bytes` from element 0 of orbit a to element -e of orbit b, at
  /// (a, e, b); infinity where there is none.
  std::vector<float> relay_us(double bytes) const;

 private:
  const Translations& translations_;
  std::vector<LiftedHop> hops_;
  std::vector<std::vector<int>> out_;
  std::vector<std::vector<int>> in_;
};

}  // namespace rondo
