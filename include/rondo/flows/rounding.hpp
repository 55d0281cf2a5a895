#pragma once

#include <cstdint>
#include <vector>

#include "rondo/core/collective.hpp"
#include "rondo/core/topology.hpp"
#include "rondo/flows/route_table.hpp"
#include "rondo/model/deadline.hpp"

namespace rondo {

/// One route for every chunk; none visits a GPU twice.
struct RoutedChunks {
  std::vector<Route> routes;
  std::vector<int> route_of_chunk;
  double greatest_load_us = 0;  ///< time that the chunks of the busiest link, or group of links, take at most
};

enum class RoutingStart {
  model,     ///< the model's routes in the model's proportions
  shortest,  ///< shortest routes
};

/// Gives every chunk of `demand` a route so that no link carries much more than the others: the proportions
/// of `start` rounded to whole chunks, then local search over the model's routes and such that avoid loaded
/// links. It minimises sum_links load^p + sum_chunks duration^p for growing p (in the limit the greatest load
/// or duration, the second greatest, ...). Durations keep small sizes, which latency decides, on short ways.
/// `seed` sets the order in which contributions are looked at; the search ends where it is once
/// `deadline` is over.
RoutedChunks round_to_chunks(const Topology& topology, const Demand& demand, const RouteTable& table,
                             RoutingStart start, std::uint64_t seed, const Deadline& deadline = {});

}  // namespace rondo
