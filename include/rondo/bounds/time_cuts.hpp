#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rondo/bounds/cuts.hpp"
#include "rondo/core/certificate.hpp"

namespace rondo {

/// How much find_time_cut looks for.
enum class TimeCutEffort : std::uint8_t {
  known_sets,  ///< for sources inside the cuts given and for all of them
  all          ///< and for those that minimum cuts of the network unrolled over time find
};

/// The best bound by a time cut that is more than `least_us`; nothing where none is found. Each destination
/// of an orbit is like the others. For each, and sources taken from `cuts`, the least time by temporally
/// repeated flows; from there Newton steps on the sources: as long as the network unrolled over time cannot
/// bring all that it wants to the destination by the time proven so far, the minimum cut names sources that
/// need longer. For unicast demand sources are tried like destinations, in the transposed problem, where that
/// is one. The work is limited by counts; past `deadline` what has been found by then.
std::optional<LowerBound> find_time_cut(const Topology& topology, const Demand& demand,
                                        const Symmetry& symmetry, const std::vector<NodeSet>& cuts,
                                        TimeCutEffort effort, double least_us, const Deadline& deadline = {});

/// The best bound by a time cut that counts contributions to sums one by one and is more than `least_us` > 0;
/// nothing where none is found or bandwidth changes. Of each destination the sources that are far, and those
/// inside `cuts`, are tried, and of these again those that minimum cuts of the network unrolled over time
/// name: fewer sources are less work for links, but each byte then counts less. The work is limited by
/// counts; past `deadline` what has been found by then.
std::optional<LowerBound> find_counted_cut(const Topology& topology, const Demand& demand,
                                           const Symmetry& symmetry, const std::vector<NodeSet>& cuts,
                                           double least_us, const Deadline& deadline = {});

}  // namespace rondo
