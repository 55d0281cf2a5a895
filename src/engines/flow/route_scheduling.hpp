#pragma once

#include <cstdint>
#include <optional>

#include "rondo/core/collective.hpp"
#include "rondo/core/rate_account.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/core/topology.hpp"
#include "rondo/flows/rounding.hpp"
#include "rondo/flows/route_table.hpp"
#include "rondo/model/deadline.hpp"

namespace rondo {

/// Of the time that is left, what rounding may take; the rest is for list scheduling.
inline constexpr double kShareOfRounding = 0.5;

/// Which of the chunks that wait for a link goes first.
enum class RouteOrder {
  bottleneck,  ///< the longest rest: time of its later hops + greatest load that a later link still has to
               ///< carry
  load,        ///< the greatest sum of loads that its later links still have to carry
  model,       ///< the one that the model starts first
};

struct RouteRules {
  RouteOrder order = RouteOrder::bottleneck;
  std::uint64_t seed = 0;  ///< of ties
  int concurrency = kAnyConcurrency;
};

/// A chunk starts a hop of its route.
struct RouteStart {
  int chunk;
  std::size_t position;  ///< in the route's hops
  double start_us;
};

struct RouteStarts {
  std::vector<RouteStart> starts = {};  ///< in the order of decisions
  double finish_us = 0;
};

/// List scheduling of routed chunks in continuous time: whenever a hop's links have room, the first of its
/// waiting chunks by the order takes it; hops that compete serve the more urgent chunk. Nothing once
/// `deadline` is over. Throws Error(unavailable) where a link is faster than the shared bandwidth it belongs
/// to.
std::optional<RouteStarts> start_routes(const Topology& topology, const std::vector<Hop>& hops,
                                        const Demand& demand, const RoutedChunks& routed,
                                        const RouteRules& rules, const Deadline& deadline = {});

/// The schedule of chunks that start so over their routes.
Schedule schedule_of(const RouteStarts& starts, const Topology& topology, const std::vector<Hop>& hops,
                     const Demand& demand, const RoutedChunks& routed);

/// Both together.
std::optional<Schedule> schedule_routes(const Topology& topology, const std::vector<Hop>& hops,
                                        const Demand& demand, const RoutedChunks& routed,
                                        const RouteRules& rules, const Deadline& deadline = {});

}  // namespace rondo
