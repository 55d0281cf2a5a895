#include "place_ways.hpp"

#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

#include "rondo/model/linear_model.hpp"

namespace rondo {
namespace {

/// For so many links it is told when a byte is where.
constexpr std::size_t kMostExactLinks = 6;
/// Of the end: so short a time to start in is one that rounding has made.
constexpr double kRounding = 1e-8;

}  // namespace

PlaceWays::PlaceWays(const Topology& topology) : topology_(topology) {
  for (const Node& node : topology.nodes()) is_place_.push_back(node.kind == NodeKind::gpu || node.multicast);
}

std::vector<double> PlaceWays::message_costs_us(NodeId from) const {
  std::set<double> costs;
  for (const LinkId l : topology_.out_links(from))
    costs.insert(topology_.message_us_at_start(topology_.link(l)));
  return {costs.begin(), costs.end()};
}

void PlaceWays::search(const PriceGrid& grid, const std::vector<double>& cost, NodeId from, double message_us,
                       double most_cost, const std::function<void(const FoundWay&)>& found) {
  /// As in core/certificates/joint_cuts.cpp, which shares no code with what it checks.
  struct Label {
    double cost;
    double from_us;
    NodeId at;
    std::size_t links;
    double first_from_us;
    double first_until_us;
    double since_us;
    std::size_t step;
    bool operator>(const Label& other) const {
      return std::tie(cost, from_us) > std::tie(other.cost, other.from_us);
    }
  };
  steps_.clear();
  std::set<std::tuple<NodeId, double, double, double>> seen;
  std::map<std::pair<NodeId, double>, double> earliest_us;
  std::priority_queue<Label, std::vector<Label>, std::greater<>> open;
  const auto take = [&](LinkId l, std::size_t period, Label label) {
    const Link& link = topology_.link(l);
    label.cost += cost[period * topology_.num_links() + l.index()];
    if (label.cost >= most_cost) return;
    label.from_us = std::max(label.from_us, grid.from_us[period]);
    if (label.links <= kMostExactLinks) {
      label.first_from_us = std::max(label.first_from_us, grid.from_us[period] - label.since_us);
      label.first_until_us = std::min(label.first_until_us, grid.end_us(period) - label.since_us);
      if (label.first_until_us - label.first_from_us < kRounding * grid.until_us) return;
    }
    label.since_us += link.latency_us;
    label.from_us = std::max(label.from_us + link.latency_us, label.first_from_us + label.since_us);
    label.at = link.dst;
    steps_.push_back({{l, period}, label.step});
    label.step = steps_.size() - 1;
    if (is_place(link.dst))
      return found({link.dst, label.cost, label.first_until_us, label.from_us, label.step});
    label.links = topology_.node(link.dst).stores() ? kMostExactLinks + 1 : label.links + 1;
    if (label.from_us < grid.until_us) open.push(label);
  };
  for (const LinkId l : topology_.out_links(from)) {
    if (topology_.message_us_at_start(topology_.link(l)) != message_us) continue;
    for (std::size_t period = 0; period < grid.size(); ++period)
      take(l, period, {0, 0, from, 0, 0, grid.until_us, 0, kNoStep});
  }
  while (!open.empty()) {
    const Label label = open.top();
    open.pop();
    const bool is_exact = label.links <= kMostExactLinks;
    if (is_exact) {
      if (!seen.emplace(label.at, label.since_us, label.first_from_us, label.first_until_us).second) continue;
    } else {
      const auto [known, is_new] = earliest_us.try_emplace({label.at, label.first_until_us}, label.from_us);
      if (!is_new && known->second <= label.from_us) continue;
      known->second = label.from_us;
    }
    const double until_us =
        is_exact ? label.first_until_us + label.since_us - kRounding * grid.until_us : grid.until_us;
    for (const LinkId l : topology_.out_links(label.at)) {
      Label next = label;
      next.from_us += topology_.message_us_at_start(topology_.link(l));
      for (std::size_t p = grid.period_at(next.from_us); p < grid.size() && grid.from_us[p] < until_us; ++p)
        take(l, p, next);
    }
  }
}

std::vector<TimedStart> PlaceWays::starts(std::size_t step) const {
  std::vector<TimedStart> all;
  for (; step != kNoStep; step = steps_[step].before) all.push_back(steps_[step].start);
  std::ranges::reverse(all);
  return all;
}

}  // namespace rondo
