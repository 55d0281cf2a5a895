#pragma once

#include <cstddef>
#include <vector>

#include "period_graph.hpp"

namespace rondo {

/// What is proven of the cheapest tree from a root to some terminals: every arc's cost is dealt over the
/// terminals, and the tree costs at least the sum of each one's distance from the root in its own share.
struct SteinerPrice {
  struct Share {
    std::size_t arc;
    double cost;
  };
  double least = 0;                             ///< no tree costs less
  std::vector<std::vector<Share>> shares = {};  ///< per terminal
};

/// Dual ascent (Wong, "A dual ascent approach for Steiner tree problems on a directed graph", Mathematical
/// Programming 28, 1984): the set of nodes from which a terminal is reached for nothing grows, all arcs into
/// it becoming cheaper alike, until the root or another terminal belongs to it; the smallest set is next.
class DualAscent {
 public:
  explicit DualAscent(const PeriodGraph& graph);

  /// `cost`: one an arc of a link, >= 0; waiting is free. Throws Error(internal) where a terminal cannot be
  /// reached.
  SteinerPrice run(std::size_t root, const std::vector<std::size_t>& terminals,
                   const std::vector<double>& cost);
  /// Per arc: what the last run left of its cost. A tree of the arcs that are free now joins all terminals.
  const std::vector<double>& left() const { return left_; }

 private:
  struct Reached {
    std::size_t free_nodes = 0;  ///< from which the terminal is reached for nothing
    double until = 0;            ///< the distance of the root or the terminal that is next
    bool is_done = false;        ///< the root is among the free ones
  };
  Reached look_back(std::size_t terminal);
  void lower_arcs_into(double until, double least, std::vector<SteinerPrice::Share>& shares);

  const PeriodGraph& graph_;
  std::size_t root_ = 0;
  std::vector<char> is_terminal_;
  std::vector<double> left_;
  std::vector<double> distance_;
  std::vector<std::size_t> settled_;
  std::vector<std::size_t> touched_;
};

}  // namespace rondo
