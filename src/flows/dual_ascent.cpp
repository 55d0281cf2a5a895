#include "dual_ascent.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <queue>
#include <utility>

#include "rondo/core/error.hpp"

namespace rondo {
namespace {

constexpr double kFar = std::numeric_limits<double>::infinity();
/// Of the greatest cost: what is left of a cost by rounding.
constexpr double kNothing = 1e-12;

}  // namespace

DualAscent::DualAscent(const PeriodGraph& graph)
    : graph_(graph), is_terminal_(graph.num_nodes(), 0), distance_(graph.num_nodes(), kFar) {}

/// Dijkstra's algorithm backwards, as far as the next terminal or the root.
DualAscent::Reached DualAscent::look_back(std::size_t terminal) {
  using Entry = std::pair<double, std::size_t>;
  for (const std::size_t node : touched_) distance_[node] = kFar;
  touched_ = {terminal};
  settled_.clear();
  distance_[terminal] = 0;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
  open.emplace(0.0, terminal);
  Reached reached;
  while (!open.empty()) {
    const auto [far, node] = open.top();
    open.pop();
    if (far > distance_[node]) continue;
    if (node == root_ && far == 0) {
      reached.is_done = true;
      return reached;
    }
    if (far > 0 && (node == root_ || is_terminal_[node])) {
      reached.until = far;
      return reached;
    }
    if (far == 0) ++reached.free_nodes;
    settled_.push_back(node);
    for (const std::size_t arc : graph_.in(node)) {
      const std::size_t before = graph_.src(arc);
      const double there = far + left_[arc];
      if (!(there < distance_[before])) continue;
      if (distance_[before] == kFar) touched_.push_back(before);
      distance_[before] = there;
      open.emplace(there, before);
    }
  }
  throw Error(ExitCode::internal, "a destination cannot be reached");
}

void DualAscent::lower_arcs_into(double until, double least, std::vector<SteinerPrice::Share>& shares) {
  for (const std::size_t node : settled_) {
    for (const std::size_t arc : graph_.in(node)) {
      const double by =
          std::min({distance_[graph_.src(arc)], until, distance_[node] + left_[arc]}) - distance_[node];
      if (!(by > 0)) continue;
      left_[arc] -= by;
      if (left_[arc] <= least) left_[arc] = 0;
      shares.push_back({arc, by});
    }
  }
}

SteinerPrice DualAscent::run(std::size_t root, const std::vector<std::size_t>& terminals,
                             const std::vector<double>& cost) {
  root_ = root;
  left_ = cost;
  left_.resize(graph_.num_arcs(), 0.0);
  const double least = kNothing * *std::ranges::max_element(left_);
  for (const std::size_t terminal : terminals) is_terminal_[terminal] = 1;
  SteinerPrice price;
  price.shares.resize(terminals.size());
  // Sets only grow: one whose size is known from before may come too early and goes back.
  using Entry = std::pair<std::size_t, std::size_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> next;
  for (std::size_t t = 0; t < terminals.size(); ++t) next.emplace(0, t);
  while (!next.empty()) {
    const auto [size, t] = next.top();
    next.pop();
    const Reached reached = look_back(terminals[t]);
    if (reached.is_done) continue;
    if (reached.free_nodes > size) {
      next.emplace(reached.free_nodes, t);
      continue;
    }
    lower_arcs_into(reached.until, least, price.shares[t]);
    price.least += reached.until;
    next.emplace(reached.free_nodes + 1, t);
  }
  for (const std::size_t terminal : terminals) is_terminal_[terminal] = 0;
  for (auto& shares : price.shares) {
    std::map<std::size_t, double> sums;
    for (const auto& [arc, by] : shares) sums[arc] += by;
    shares.clear();
    for (const auto& [arc, by] : sums) shares.push_back({arc, by});
  }
  return price;
}

}  // namespace rondo
