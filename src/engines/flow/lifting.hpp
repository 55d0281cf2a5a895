#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rondo/core/collective.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/core/topology.hpp"
#include "rondo/decomp/orbits.hpp"
#include "rondo/flows/route_table.hpp"
#include "route_scheduling.hpp"

/// Schedules of a symmetric topology from those of a part of it. A group of rotations (find_rotations) leaves
/// no GPU and no link in its place. So one contribution of each orbit is scheduled, on links that stand for
/// their orbits; its images do the same at the same time, each on links of its own.
namespace rondo {

/// A problem as the representatives see it.
struct FoldedProblem {
  std::vector<Permutation> rotations;  ///< the identity first
  Topology topology;         ///< nodes and links as they are; shared bandwidth that of representative links
  std::vector<LinkId> fold;  ///< per link the representative of its orbit
  Demand demand;             ///< the contributions of representative origins, whose data goes anywhere
  std::vector<std::size_t> contribution;  ///< per contribution of `demand`, its number in the whole
  std::vector<std::vector<std::uint32_t>>
      images;  ///< [rotation][contribution of `demand`]: number in the whole
};

/// `rotations` have to be automorphisms of topology and demand that leave nothing in its place.
FoldedProblem fold_problem(const Topology& topology, const Demand& demand,
                           std::vector<Permutation> rotations);

/// The table with the representatives of links for links. Hops that use two links of an orbit are left out:
/// their images would get in their way. Nothing where some contribution cannot do without them.
struct FoldedRoutes {
  RouteTable real;    ///< without hops that cannot be folded
  RouteTable folded;  ///< the same hops and routes over representative links
};
std::optional<FoldedRoutes> fold_routes(const FoldedProblem& problem, const RouteTable& table);

/// The routes with one hop for all that fold alike, so that their chunks wait in one queue.
RoutedChunks merge_hops(const RouteTable& folded, const RoutedChunks& routed);

/// The whole schedule. `starts` are those of `routed`, chunks of `problem.demand`; `hops` the real ones.
Schedule unfold(const FoldedProblem& problem, const Topology& topology, const Demand& whole,
                const Demand& part, const std::vector<Hop>& hops, const RoutedChunks& routed,
                const RouteStarts& starts);

}  // namespace rondo
