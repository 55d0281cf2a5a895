#include "even_rates.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "rondo/graph/union_find.hpp"

namespace rondo {
namespace {

constexpr double kRounding = 1e-9;
constexpr int kMostParts = 4;
/// Of a link's bandwidth: less is not worth a lower rate.
constexpr double kWorthwhile = 0.02;

/// The most of a link's bandwidth that transfers at `rate` leave unused, if `rate` is at most that.
double unused(const std::set<double>& bandwidths, double rate) {
  double most = 0;
  for (const double bandwidth : bandwidths) {
    const double slots = std::floor(bandwidth / rate * (1 + kRounding));
    most = std::max(most, 1 - slots * rate / bandwidth);
  }
  return most;
}

/// Of the rates that divide the slowest link's bandwidth and leave hardly more unused than any, the greatest;
/// of that, as small a part as `most` transfers on the fastest link allow, down to a quarter: hops then
/// seldom wait for links that are free at different times.
double even_rate(const std::set<double>& bandwidths, int most) {
  const double slowest = *bandwidths.begin();
  const auto are_too_many = [&](double rate) { return *bandwidths.rbegin() / rate > most * (1 + kRounding); };
  double best = slowest;
  double least = unused(bandwidths, best);
  for (int parts = 2; parts <= kMostParts && !are_too_many(slowest / parts); ++parts) {
    const double left = unused(bandwidths, slowest / parts);
    if (left > least - kWorthwhile) continue;
    best = slowest / parts;
    least = left;
  }
  int parts = kMostParts;
  while (parts > 1 && are_too_many(best / parts)) --parts;
  return best / parts;
}

}  // namespace

std::vector<Hop> at_even_rates(const Topology& topology, std::span<const Hop> hops, int most) {
  // Switches that lead to each other are one group; all that a hop goes over are.
  UnionFind groups(topology.num_nodes());
  for (const Link& link : topology.links()) {
    if (!topology.is_gpu(link.src) && !topology.is_gpu(link.dst))
      groups.unite(link.src.index(), link.dst.index());
  }
  const auto group_of = [&](const Hop& hop) {
    return groups.find(topology.link(hop.links.front().link).dst.index());
  };
  const auto bandwidths_of = [&](const Hop& hop) {
    std::set<double> bandwidths;
    for (const HopLink& part : hop.links) bandwidths.insert(topology.link(part.link).bandwidth_GBps);
    return bandwidths;
  };
  const auto is_evened = [](const Hop& hop) { return hop.links.size() > 1 && !hop.changes; };
  std::map<std::size_t, std::set<double>> bandwidths;
  for (const Hop& hop : hops) {
    if (is_evened(hop)) bandwidths[group_of(hop)].merge(bandwidths_of(hop));
  }
  std::map<std::size_t, double> rate;
  for (const auto& [group, all] : bandwidths) rate[group] = even_rate(all, most);

  std::vector<Hop> evened(hops.begin(), hops.end());
  for (Hop& hop : evened) {
    if (!is_evened(hop)) continue;
    const double divisor = *bandwidths_of(hop).begin() / rate.at(group_of(hop));
    if (divisor > 1 + kRounding) hop = slowed(std::move(hop), divisor);
  }
  return evened;
}

}  // namespace rondo
