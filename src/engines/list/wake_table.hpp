#pragma once

#include <span>
#include <vector>

#include "rondo/core/hops.hpp"

namespace rondo {

/// What to look at again when a link falls idle.
class WakeTable {
 public:
  /// `chunk_sizes`: bytes that chunks may have.
  WakeTable(const Topology& topology, const HopTable& hops, const std::vector<double>& chunk_sizes);

  /// Hops that may start then: over the link, or over another one that it shares bandwidth with.
  std::span<const int> hops(LinkId link) const { return hops_[link.index()]; }
  /// How long after their starts those hops use their link, us, ascending.
  std::span<const double> offsets_us(LinkId link) const { return offsets_us_[link.index()]; }

 private:
  std::vector<std::vector<int>> hops_;           ///< per link
  std::vector<std::vector<double>> offsets_us_;  ///< per link
};

}  // namespace rondo
