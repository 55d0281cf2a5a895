#pragma once

#include <map>
#include <set>
#include <utility>

#include "rondo/core/collective.hpp"
#include "rondo/core/hops.hpp"

namespace rondo {

/// When parts of sums go on from store-and-forward switches. Of two that are there at one time it would be
/// open which goes on over which link (FORMATS.md 3, rule 3), so the later one has to start a little later.
class SumsInSwitches {
 public:
  explicit SumsInSwitches(const Topology& topology) : topology_(topology) {}

  /// `start_us`, or a time soon after it where the chunk would meet another part of its sum in a switch.
  double start_apart_us(const Hop& hop, ChunkId chunk, double bytes, double start_us) const;
  void note(const Hop& hop, ChunkId chunk, double bytes, double start_us);

 private:
  bool stores(const HopLink& part) const;  ///< the switch before the link

  const Topology& topology_;
  std::map<std::pair<NodeId, ChunkId>, std::set<double>> onward_us_;
};

}  // namespace rondo
