#include "path_stripping.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rondo/core/error.hpp"

namespace rondo {
namespace {

/// Of all that the block carries: what is less is not worth a path of its own.
constexpr double kLeastAmount = 1e-12;

}  // namespace

PathStripping::PathStripping(const Digraph& graph, const std::vector<double>& length)
    : graph_(graph),
      search_(graph),
      in_(static_cast<std::size_t>(graph.num_nodes)),
      next_arc_(in_.size(), -1) {
  search_.set_lengths(length);
  for (std::size_t a = 0; a < graph.arcs.size(); ++a)
    in_[static_cast<std::size_t>(graph.arcs[a].dst)].push_back(a);
}

const std::vector<std::size_t>& PathStripping::path_within(const std::vector<double>& amount, double least,
                                                           int source, int sink) {
  path_.clear();
  seen_ = {sink};
  bool is_found = false;
  for (std::size_t k = 0; k < seen_.size() && !is_found; ++k) {
    for (const std::size_t a : in_[static_cast<std::size_t>(seen_[k])]) {
      const int before = graph_.arcs[a].src;
      int& next = next_arc_[static_cast<std::size_t>(before)];
      if (amount[a] <= least || next >= 0 || before == sink) continue;
      next = static_cast<int>(a);
      seen_.push_back(before);
      is_found = before == source;
      if (is_found) break;
    }
  }
  for (int v = source; is_found && v != sink;) {
    const auto a = static_cast<std::size_t>(next_arc_[static_cast<std::size_t>(v)]);
    path_.push_back(a);
    v = graph_.arcs[a].dst;
  }
  for (const int v : seen_) next_arc_[static_cast<std::size_t>(v)] = -1;
  return path_;
}

std::vector<ArcLoad> PathStripping::exact_flow(const CommodityBlock& block, std::vector<double> amount) {
  const ShortestPaths shortest = search_.from(block.source);
  std::vector<double> carried(amount.size(), 0.0);
  double total = 0;
  for (const Sink& sink : block.sinks) total += sink.amount;
  const double least = kLeastAmount * total;
  for (const Sink& sink : block.sinks) {
    if (!std::isfinite(shortest.distance[static_cast<std::size_t>(sink.node)])) {
      throw Error(ExitCode::unavailable,
                  fmt::format("node {} cannot be reached from node {}", sink.node, block.source));
    }
    double left = sink.amount;
    while (left > least) {
      const std::vector<std::size_t>& path = path_within(amount, least, block.source, sink.node);
      if (path.empty()) break;
      double along = left;
      for (const std::size_t a : path) along = std::min(along, amount[a]);
      for (const std::size_t a : path) {
        amount[a] -= along;
        carried[a] += along;
      }
      left -= along;
    }
    for (int v = sink.node; left > 0 && v != block.source;) {
      const auto a = static_cast<std::size_t>(shortest.last_arc[static_cast<std::size_t>(v)]);
      carried[a] += left;
      v = graph_.arcs[a].src;
    }
  }
  std::vector<ArcLoad> loads;
  for (std::size_t a = 0; a < carried.size(); ++a) {
    if (carried[a] > 0) loads.push_back({static_cast<int>(a), carried[a]});
  }
  return loads;
}

}  // namespace rondo
