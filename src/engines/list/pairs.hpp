#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rondo/core/hops.hpp"

namespace rondo {

/// What the rule `pairwise` (ListRules) has to know of each hop of a table.
struct Pairs {
  /// The hop that leads back from its receiver to its sender, -1 where there is none.
  std::vector<int> back;
  /// Chunks that it waits for: 1, 2, 4 or 8 where messages cost most, 1 or 2 elsewhere. One message of much
  /// later is often sooner done than two at once; how much later `seed` decides, the same for all hops whose
  /// messages cost the same.
  std::vector<std::size_t> least_chunks;
  /// Whether long chunks go together as well, however many; also the seed's choice.
  bool all_together = false;
  /// Whether of pairs that learn equally much those go first whose numbers differ in the lowest bits, as in
  /// recursive doubling: then none is left over without a partner. Else chance decides; the seed's choice.
  bool by_number = false;
};

Pairs make_pairs(const HopTable& hops, std::uint64_t seed);

}  // namespace rondo
