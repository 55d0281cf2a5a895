#include "congestion_prices.hpp"

#include <algorithm>
#include <cmath>

#include "rondo/core/units.hpp"
#include "rondo/flows/rounding.hpp"
#include "rondo/flows/route_table.hpp"

namespace rondo {

std::vector<std::vector<double>> congestion_prices(const Topology& topology, const Demand& demand,
                                                   const Deadline& deadline) {
  const RouteTable table = RouteBuilder(topology, demand).build();
  const RoutedChunks routed = round_to_chunks(topology, demand, table, RoutingStart::shortest, 0, deadline);
  std::vector<double> load_us(topology.num_links(), 0.0);
  for (std::size_t c = 0; c < demand.num_chunks(); ++c) {
    for (const int h : routed.routes[static_cast<std::size_t>(routed.route_of_chunk[c])].hops) {
      for (const HopLink& part : table.hops[static_cast<std::size_t>(h)].links) {
        load_us[part.link.index()] += demand.bytes(ChunkId{c}) * part.us_per_byte;
      }
    }
  }
  const double greatest = *std::max_element(load_us.begin(), load_us.end());
  std::vector<std::vector<double>> prices;
  for (const double exponent : {0.0, 1.0, 4.0, 16.0, 64.0, 256.0}) {
    std::vector<double>& price = prices.emplace_back();
    for (std::size_t l = 0; l < topology.num_links(); ++l) {
      // A floor keeps pairs apart that use none of the loaded links.
      const double share = std::max(std::pow(load_us[l] / greatest, exponent), 1e-9);
      price.push_back(share * transmission_us(1, topology.links()[l].bandwidth_GBps));
    }
  }
  return prices;
}

}  // namespace rondo
