#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rondo/core/collective.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/core/topology.hpp"
#include "rondo/decomp/free_group.hpp"
#include "rondo/flows/route_table.hpp"
#include "route_scheduling.hpp"

/// Schedules of unicast demand on a symmetric topology, decided for one contribution of each orbit under a
/// free group, on the links that represent their orbits. The images of a contribution take the images of its
/// links at the same times, and no two of them meet on a link.
namespace rondo {

/// A problem reduced to the representatives of its orbits.
struct OrbitProblem {
  FreeGroup group;
  Topology topology;  ///< nodes and links as they are; shared bandwidth that of representative links
  Demand demand;      ///< the contributions of representative origins, whose data goes anywhere
  /// [element][contribution of `demand`]: number of the image among the contributions of the whole
  std::vector<std::vector<std::uint32_t>> images;

  LinkId representative(LinkId l) const { return group.link(group.place(l).orbit, 0); }
};

/// `group` has to be of automorphisms of topology and demand.
OrbitProblem orbit_problem(const Topology& topology, const Demand& demand, FreeGroup group);

/// Whether the images of a chunk may share a link, at rates that leave room for all of them.
enum class OrbitMeetings { none, shared };

/// The routes of representative contributions. Unless images share links, hops that use two links of one
/// orbit are left out: their images would occupy each other's links.
struct OrbitRoutes {
  RouteTable real;             ///< over links as they are
  RouteTable representatives;  ///< the same hops and routes, over the representatives of their links
};
/// Nothing where some contribution cannot do without the hops that are left out.
std::optional<OrbitRoutes> orbit_routes(const OrbitProblem& problem, const RouteTable& table,
                                        OrbitMeetings meetings = OrbitMeetings::none);

/// The routes with one hop for all that use the same representative links, so that their chunks wait in one
/// queue.
RoutedChunks merge_hops(const RouteTable& representatives, const RoutedChunks& routed);

/// The schedule of all images of `part`, whose chunks are those of `problem.demand` in `chunks` chunks a
/// contribution, over links as they are.
Schedule images_of(const Schedule& part, const OrbitProblem& problem, int chunks);

}  // namespace rondo
