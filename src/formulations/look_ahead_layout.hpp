#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "rondo/core/index.hpp"
#include "rondo/model/linear_model.hpp"
#include "rondo/model/round_model.hpp"

namespace rondo {

/// The columns of a round's model and their positions (see look_ahead_round.cpp).
class RoundLayout {
 public:
  explicit RoundLayout(const RoundProblem& problem);

  const RoundProblem& problem() const { return problem_; }
  int num_columns() const { return columns_; }
  /// Column of start(c, w, k), or -1.
  int start(std::size_t c, std::size_t w, int k) const {
    const Starts& starts = start_[c * problem_.paths.size() + w];
    if (k < starts.first || k >= starts.first + static_cast<int>(starts.column.size())) return -1;
    return starts.column[index(k - starts.first)];
  }
  int first_start(std::size_t c, std::size_t w) const { return start_[c * problem_.paths.size() + w].first; }
  /// Column of held(c, n, k), or -1.
  int held(std::size_t c, int n, int k) const {
    const auto& [first, base] = held_[c * index(problem_.num_nodes) + index(n)];
    return k < first || k >= problem_.num_epochs ? -1 : base + k - first;
  }
  int first_held(std::size_t c, int n) const { return held_[c * index(problem_.num_nodes) + index(n)].first; }
  struct Near {
    std::size_t chunk;
    int destination;
    int node;
    int column;
    double epochs;  ///< saved
  };
  const std::vector<Near>& near() const { return near_; }
  const std::vector<int>& paths_into(int n) const { return paths_into_[index(n)]; }
  int group(int n) const { return problem_.group.empty() ? n : problem_.group[index(n)]; }
  bool is_holder(std::size_t c, int n) const {
    const auto& holders = problem_.chunks[c].holders;
    return std::any_of(holders.begin(), holders.end(), [&](const auto& h) { return h.node == n; });
  }
  /// Epochs to the destination from the nearest holder.
  double distance_now(std::size_t c, int destination) const {
    double least = kInfinity;
    for (const auto& h : problem_.chunks[c].holders)
      least = std::min(least, distance(h.node, destination) + std::max(0, h.epoch - problem_.num_epochs));
    return std::isfinite(least) ? least : problem_.num_epochs;
  }
  /// Calls visit(w, k, column) for every start of the chunk into the node.
  template <class Visit>
  void for_each_start_into(std::size_t c, int n, Visit visit) const {
    for (const int w : paths_into(n)) {
      const Starts& starts = start_[c * problem_.paths.size() + index(w)];
      for (std::size_t i = 0; i < starts.column.size(); ++i) {
        if (starts.column[i] >= 0) visit(index(w), starts.first + static_cast<int>(i), starts.column[i]);
      }
    }
  }

 private:
  struct Starts {
    int first = kNeverEpoch;
    std::vector<int> column = {};
  };

  double distance(int from, int to) const { return problem_.distance[index(from * problem_.num_nodes + to)]; }

  void find_blocked_epochs();

  void lay_out_chunk(std::size_t c);

  const RoundProblem problem_;
  std::vector<std::vector<int>> paths_into_;
  std::vector<char> may_start_;  ///< path x epoch
  std::vector<Starts> start_;    ///< chunk x path
  struct Held {
    int first = kNeverEpoch;
    int base = 0;
  };
  std::vector<Held> held_;  ///< chunk x node
  std::vector<Near> near_;
  int columns_ = 0;
};

}  // namespace rondo
