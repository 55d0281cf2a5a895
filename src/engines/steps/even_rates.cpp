#include "even_rates.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "rondo/core/index.hpp"

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
  // Switches that lead to each other are one group.
  std::vector<int> group(topology.num_nodes());
  std::iota(group.begin(), group.end(), 0);
  const auto root = [&](int node) {
    while (group[index(node)] != node) node = group[index(node)] = group[index(group[index(node)])];
    return node;
  };
  const auto is_switch = [&](NodeId node) { return !topology.is_gpu(node); };
  for (const Link& link : topology.links()) {
    if (is_switch(link.src) && is_switch(link.dst)) group[index(root(link.src.value))] = root(link.dst.value);
  }
  std::map<int, std::set<double>> bandwidths;
  for (const Hop& hop : hops) {
    if (hop.links.size() < 2 || hop.changes) continue;
    for (const HopLink& part : hop.links) {
      const Link& link = topology.link(part.link);
      const NodeId node = is_switch(link.src) ? link.src : link.dst;
      bandwidths[root(node.value)].insert(link.bandwidth_GBps);
    }
  }
  std::map<int, double> rate;
  for (const auto& [switches, all] : bandwidths) rate[switches] = even_rate(all, most);

  std::vector<Hop> evened(hops.begin(), hops.end());
  for (Hop& hop : evened) {
    if (hop.links.size() < 2 || hop.changes) continue;
    double slowest = kInfinity;
    for (const HopLink& part : hop.links)
      slowest = std::min(slowest, topology.link(part.link).bandwidth_GBps);
    const NodeId node = topology.link(hop.links.front().link).dst;
    const double divisor = slowest / rate.at(root(node.value));
    if (divisor > 1 + kRounding) hop = slowed(std::move(hop), divisor);
  }
  return evened;
}

}  // namespace rondo
