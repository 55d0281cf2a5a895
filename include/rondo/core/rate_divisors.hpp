#pragma once

#include <span>
#include <vector>

#include "rondo/core/hops.hpp"

namespace rondo {

/// Divisors of all hops' rates, 1 first, each of which leaves less of some link's bandwidth unused than those
/// before when a link carries as many transfers of a hop as it has room for: where links of 50 GB/s lead to
/// one of 75, a third of that stays unused, and none at half of the rate. At most `most`.
std::vector<int> rate_divisors(std::span<const Hop> hops, int most);

}  // namespace rondo
