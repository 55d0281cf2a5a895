#include "rondo/flows/link_rows.hpp"

#include <algorithm>

#include "rondo/core/index.hpp"
#include "rondo/core/units.hpp"

namespace rondo {

LinkRows::LinkRows(const Topology& topology)
    : us_per_byte_(topology.num_links()), rows_of_(topology.num_links()) {
  for (std::size_t l = 0; l < topology.num_links(); ++l) {
    us_per_byte_[l] = transmission_us(1, topology.links()[l].bandwidth_GBps);
    rows_of_[l].push_back(static_cast<int>(l));
  }
  for (const SharedBandwidth& group : topology.shared_bandwidth()) {
    for (const LinkId l : group.links) rows_of_[l.index()].push_back(static_cast<int>(count()));
    us_per_byte_.push_back(transmission_us(1, group.bandwidth_GBps));
  }
}

double LinkRows::least_us_per_byte() const {
  return *std::ranges::min_element(us_per_byte_);
}

std::vector<double> LinkRows::link_costs(std::span<const double> price) const {
  std::vector<double> cost(rows_of_.size(), 0);
  for (std::size_t l = 0; l < cost.size(); ++l) {
    for (const int row : rows_of_[l]) cost[l] += price[index(row)] * us_per_byte_[index(row)];
  }
  return cost;
}

}  // namespace rondo
