#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "rondo/core/random.hpp"

namespace rondo {

/// A part of a resource.
struct ClaimedPart {
  int resource = 0;  ///< numbers from 0
  double share = 1;  ///< 0 .. 1
};

/// Something that wants its parts of all of its resources.
struct Claim {
  std::vector<ClaimedPart> parts = {};  ///< each resource at most once
  double weight = 0;                    ///< > 0
};

/// A set of claims that leaves no resource overdrawn and is of great weight, found by iterated local search:
/// greedily in the given order, then claim after claim is forced in at random, those in its way are thrown
/// out, what fits again is put in, and the change stays unless weight is lost. `left`: what is left of each
/// resource; those beyond its end are whole. Returns positions in `claims`, ascending.
///
/// Maximum-weight matchings of this kind are what keeps the ports of a switch busy (McKeown et al.,
/// "Achieving 100% Throughput in an Input-Queued Switch", IEEE Trans. Communications 47, 1999); here a claim
/// may need more than two ports.
std::vector<std::size_t> compatible_set(std::span<const Claim> claims, Random& random,
                                        std::span<const double> left = {});

}  // namespace rondo
