#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "price_grid.hpp"
#include "rondo/core/topology.hpp"

namespace rondo {

/// A start on a link in a period.
struct TimedStart {
  LinkId link;
  std::size_t period = 0;
};

/// What a way is that a search has found.
struct FoundWay {
  NodeId to;
  double cost = 0;
  double until_us = 0;    ///< its byte starts on the first link before
  double arrival_us = 0;  ///< no earlier than this
  std::size_t step = 0;   ///< the last one
};

/// Ways of a byte from place to place, which are GPUs and switches that copy, over switches that do not.
/// FORMATS.md 3 (joint cuts) says when it can start on link after link.
class PlaceWays {
 public:
  explicit PlaceWays(const Topology& topology);

  bool is_place(NodeId n) const { return is_place_[n.index()] != 0; }
  /// Different message costs of the links that leave a place.
  std::vector<double> message_costs_us(NodeId from) const;

  /// All that begin at `from` over links of that message cost, but for such as are no cheaper than another
  /// over the same links' ends at the same times. `cost`: period by period, one a link; those that come to
  /// `most_cost` are left out.
  void search(const PriceGrid& grid, const std::vector<double>& cost, NodeId from, double message_us,
              double most_cost, const std::function<void(const FoundWay&)>& found);
  /// Starts that the last search has looked at.
  std::size_t work() const { return steps_.size(); }
  /// Of the last search, first to last.
  std::vector<TimedStart> starts(std::size_t step) const;

 private:
  struct Step {
    TimedStart start;
    std::size_t before;  ///< kNoStep: none
  };
  static constexpr std::size_t kNoStep = static_cast<std::size_t>(-1);

  const Topology& topology_;
  std::vector<char> is_place_ = {};
  std::vector<Step> steps_ = {};
};

}  // namespace rondo
