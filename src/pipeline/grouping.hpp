#pragma once

#include <optional>
#include <vector>

#include "rondo/core/collective.hpp"
#include "rondo/core/topology.hpp"

/// How GPUs are grouped for sums that all of them want.
namespace rondo {

/// Groups add the sums up part by part, those that have the same part exchange it, and groups spread it; or
/// all hear from each group.
struct Grouping {
  std::vector<std::vector<GpuId>> groups = {};  ///< as large as each other; one: nothing is exchanged
  /// Of each group the GPUs that add up a part each; as many in each group. Those at one place have the same
  /// part.
  std::vector<std::vector<GpuId>> adders = {};
  /// Those that then take the other groups' sums of a part and spread it: the adders themselves, or GPUs that
  /// links of other groups lead to.
  std::vector<std::vector<GpuId>> takers = {};
  /// What adders have goes to all GPUs straight away, over switches that copy; nothing is spread.
  bool tells = false;
  int chunks = 1;         ///< of a part, at least
  double latency_us = 0;  ///< of the three steps
  double about_us = 0;    ///< with what they take for the bytes, in part at the same time

  int num_parts() const { return static_cast<int>(adders.front().size()); }
  bool is_in_pairs() const { return adders != takers; }
  /// Per part those that exchange it, group after group; in pairs an adder and a taker of each.
  std::vector<std::vector<GpuId>> exchanging() const;
};

/// For sums of the same GPUs for those GPUs (AllReduce).
struct Groupings {
  Grouping halves = {};  ///< all GPUs in one group, each with a part of its own
  /// Others: GPUs in the middle alone add up, or chassis and groups of near ones do so one by one. What may
  /// end first is in front. No GPUs in the middle where messages cost.
  std::vector<Grouping> others = {};
};

/// Nothing where other sums are asked, some come late, or there are more than 256 GPUs.
std::optional<Groupings> groupings_of(const Topology& topology, const Demand& demand);

}  // namespace rondo
