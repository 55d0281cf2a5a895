#pragma once

#include <optional>
#include <vector>

#include "rondo/core/collective.hpp"
#include "rondo/core/hops.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/core/topology.hpp"

namespace rondo {

/// AllReduce among GPUs that exchange whole buffers.
struct ExchangeProblem {
  const Topology& topology;
  const HopTable& hops;
  std::vector<GpuId> members = {};
  const Demand& demand;
  int concurrency = 0;
};

/// AllReduce level by level. First, groups of radices[0] members that follow one another add up what they
/// have, then radices[1] such groups, and so on; the radices multiply to the number of members. In each level
/// GPUs with a hop from every other group take the groups' sums from there, as long as who sends has not
/// added anything yet; others get the result from those that have it. With radices of 2 this is recursive
/// doubling, with others recursive multiplying (Ruefenacht, Bull, Booth, 2017). Nothing where hops do not
/// join the groups.
std::optional<Schedule> exchange(const ExchangeProblem& problem, const std::vector<int>& radices);

/// All ways to write `count` >= 2 as a product of factors >= 2 in an order.
std::vector<std::vector<int>> ordered_factorisations(int count);

}  // namespace rondo
