#include "rondo/flows/link_rows.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "rondo/core/index.hpp"
#include "rondo/core/units.hpp"

namespace rondo {

LinkRows::LinkRows(const Topology& topology, double bytes)
    : us_(topology.num_links()), rows_of_(topology.num_links()) {
  const auto goes_on = [&](NodeId n) { return !topology.is_gpu(n) && !topology.node(n).stores(); };
  for (std::size_t l = 0; l < topology.num_links(); ++l) {
    us_[l] = transmission_us(bytes, topology.links()[l].bandwidth_GBps);
    rows_of_[l].push_back(static_cast<int>(l));
    const Link& link = topology.links()[l];
    may_be_kept_.push_back(goes_on(link.src) || goes_on(link.dst) ? 1 : 0);
  }
  for (const SharedBandwidth& group : topology.shared_bandwidth()) {
    for (const LinkId l : group.links) rows_of_[l.index()].push_back(static_cast<int>(count()));
    us_.push_back(transmission_us(bytes, group.bandwidth_GBps));
    may_be_kept_.push_back(0);
  }
}

double LinkRows::least_us() const {
  return *std::ranges::min_element(us_);
}

double LinkRows::slowest_us(std::span<const LinkId> links) const {
  double most = 0;
  for (const LinkId l : links) {
    if (may_be_kept(l)) most = std::max(most, us_[l.index()]);
  }
  return most;
}

std::vector<double> LinkRows::link_costs(std::span<const double> price, double slowest_us) const {
  std::vector<double> cost(rows_of_.size(), 0);
  for (std::size_t l = 0; l < cost.size(); ++l) {
    for (const int row : rows_of_[l]) cost[l] += price[index(row)] * us(row, slowest_us);
  }
  return cost;
}

std::vector<double> mixed_prices(std::vector<double> price, std::span<const double> other,
                                 double share_of_other, std::size_t first) {
  const double sum = std::accumulate(price.begin() + static_cast<std::ptrdiff_t>(first), price.end(), 0.0);
  for (std::size_t i = 0; i < price.size(); ++i)
    price[i] = (sum > 0 ? (1 - share_of_other) * price[i] / sum : 0) + share_of_other * other[i];
  return price;
}

}  // namespace rondo
