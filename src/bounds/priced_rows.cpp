#include "priced_rows.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "rondo/core/units.hpp"

namespace rondo {

PricedRows::PricedRows(const Topology& topology, const Symmetry& symmetry) : topology_(topology) {
  std::map<int, AlikeRows> of_orbit;
  for (std::size_t l = 0; l < topology.num_links(); ++l) {
    AlikeRows& alike = of_orbit[symmetry.link_orbit[l]];
    alike.rows.push_back(l);
    alike.links.emplace_back(l);
    alike.GBps += topology.links()[l].bandwidth_GBps;
  }
  std::map<std::pair<double, std::vector<int>>, AlikeRows> of_groups;
  for (std::size_t i = 0; i < topology.shared_bandwidth().size(); ++i) {
    const SharedBandwidth& group = topology.shared_bandwidth()[i];
    std::vector<int> orbits;
    for (const LinkId l : group.links) orbits.push_back(symmetry.link_orbit[l.index()]);
    std::ranges::sort(orbits);
    AlikeRows& alike = of_groups[{group.bandwidth_GBps, std::move(orbits)}];
    alike.rows.push_back(topology.num_links() + i);
    alike.links.insert(alike.links.end(), group.links.begin(), group.links.end());
    alike.GBps += group.bandwidth_GBps;
  }
  for (auto& [orbit, alike] : of_orbit) rows_.push_back(std::move(alike));
  for (auto& [key, alike] : of_groups) rows_.push_back(std::move(alike));
}

PricesCertificate PricedRows::certificate(const PriceGrid& grid, const std::vector<double>& price) const {
  const std::size_t all_rows = topology_.num_links() + topology_.shared_bandwidth().size();
  std::map<std::size_t, double> at;
  for (std::size_t period = 0; period < grid.size(); ++period) {
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      const double value = price[period * rows_.size() + r];
      if (value <= 0) continue;
      for (const std::size_t row : rows_[r].rows) at[period * all_rows + row] = value;
    }
  }
  PricesCertificate prices{.from_us = grid.from_us, .until_us = grid.until_us, .place = {}, .price = {}};
  for (const auto& [place, value] : at) {
    prices.place.push_back(static_cast<std::int32_t>(place));
    prices.price.push_back(value);
  }
  return prices;
}

double PricedRows::earned_per_us(const std::vector<double>& price, std::size_t period) const {
  double earned = 0;
  for (std::size_t r = 0; r < rows_.size(); ++r)
    earned += price[period * rows_.size() + r] * rows_[r].GBps * kBytesPerUsPerGBps;
  return earned;
}

double PricedRows::newton_step(const PriceGrid& grid, const std::vector<double>& price,
                               double payments) const {
  double growth = 0;
  for (std::size_t period = 0; period < grid.size(); ++period)
    growth += earned_per_us(price, period) * grid.growth(period);
  const double step_us = growth > 0 ? (payments - 1) / growth : grid.until_us;
  return step_us - kPriceRounding * grid.until_us;
}

}  // namespace rondo
