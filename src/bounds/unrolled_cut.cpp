#include "unrolled_cut.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "rondo/core/index.hpp"
#include "rondo/core/units.hpp"
#include "rondo/graph/digraph.hpp"

namespace rondo {
namespace {

constexpr double kUnbounded = std::numeric_limits<double>::infinity();
/// Links times layers, for each of the two families of layers.
constexpr std::size_t kMostArcs = 100'000;
constexpr std::size_t kFewestSteps = 8;
constexpr std::size_t kMostSteps = 64;
/// Of a step: what is less apart counts as one time.
constexpr double kTolerance = 1e-9;

/// Steps of the grid in `us`, rounded down.
double whole_steps(double us, double step_us) {
  return std::floor(us / step_us + kTolerance);
}

/// A step of which few delays are much more than a multiple: of longest delay / 1, / 2, ... the first that
/// divides all, else the one that loses least.
double grid_step(const std::vector<double>& delay_us, double extent_us) {
  std::map<double, double> count;
  for (const double us : delay_us) {
    if (us > 0 && us <= extent_us) ++count[us];
  }
  if (count.empty()) return 0;
  const double most = std::clamp(static_cast<double>(kMostArcs / delay_us.size()),
                                 static_cast<double>(kFewestSteps), static_cast<double>(kMostSteps));
  double best_us = extent_us / most;
  double least_lost = kUnbounded;
  for (double parts = 1; count.rbegin()->first / parts >= extent_us / most; ++parts) {
    const double step_us = count.rbegin()->first / parts;
    double lost = 0;
    double all = 0;
    for (const auto& [us, links] : count) {
      lost += links * std::max(0.0, us - whole_steps(us, step_us) * step_us);
      all += links * us;
    }
    if (lost >= least_lost - kTolerance * all) continue;
    least_lost = lost;
    best_us = step_us;
    if (lost <= kTolerance * all) break;
  }
  return best_us;
}

class Unrolled {
 public:
  Unrolled(const TimedNetwork& network, const std::vector<Supply>& supplies, NodeId target, double us)
      : network_(network), topology_(*network.topology), supplies_(supplies), target_(target), us_(us) {
    find_ranges();
  }

  UnrolledCut cut(std::size_t& work) {
    add_layers();
    number_nodes();
    add_waiting();
    for (std::size_t l = 0; l < topology_.num_links(); ++l) add_link(l);
    add_supplies();
    work += graph_.arcs.size();
    const MinCut found = min_cut(graph_, capacity_, kRoot, kTarget);
    UnrolledCut result{.share = found.value, .separated = {}, .alpha_us = {}};
    for (std::size_t s = 0; s < supplies_.size(); ++s) {
      if (found.source_side[index(first_supply_) + s]) result.separated.push_back(&supplies_[s]);
    }
    for (std::size_t n = 0; n < topology_.num_nodes(); ++n) result.alpha_us.push_back(opening(n, found));
    return result;
  }

 private:
  static constexpr int kRoot = 0;
  static constexpr int kTarget = 1;

  /// When data can first be at each node, and how long before the end it has to be.
  void find_ranges() {
    Digraph graph = topology_.graph();
    std::vector<double> delay = network_.delay_us;
    behind_us_ = shortest_paths(reversed(graph), delay, target_.value).distance;
    const int root = graph.num_nodes++;
    for (const Supply& supply : supplies_) {
      bytes_ += supply.bytes;
      for (const auto& [node, ready_us] : supply.holders) {
        graph.arcs.push_back({root, node.value});
        delay.push_back(ready_us);
      }
    }
    before_us_ = shortest_paths(graph, delay, root).distance;
  }

  bool is_of_use(std::size_t n) const { return before_us_[n] + behind_us_[n] < us_; }

  void add_layers() {
    double extent_us = 0;
    for (std::size_t n = 0; n < topology_.num_nodes(); ++n) {
      if (is_of_use(n)) extent_us = std::max(extent_us, before_us_[n] + behind_us_[n]);
    }
    extent_us = std::min(us_, extent_us);
    const double step_us = grid_step(network_.delay_us, extent_us);
    times_us_ = {0};
    for (double k = 1; step_us > 0 && (k - 1) * step_us < extent_us && k * step_us < us_; ++k) {
      times_us_.push_back(k * step_us);
      times_us_.push_back(us_ - k * step_us);
    }
    for (const Supply& supply : supplies_) {
      for (const auto& holder : supply.holders) times_us_.push_back(holder.second);
    }
    std::ranges::sort(times_us_);
    const double apart_us = kTolerance * (step_us > 0 ? step_us : us_);
    const auto end = std::unique(times_us_.begin(), times_us_.end(),
                                 [&](double a, double b) { return b - a <= apart_us; });
    times_us_.erase(end, times_us_.end());
    while (times_us_.size() > 1 && times_us_.back() >= us_ - apart_us) times_us_.pop_back();
    times_us_.push_back(us_);
    for (const double us : network_.delay_us)
      rounded_delay_us_.push_back(step_us > 0 ? whole_steps(us, step_us) * step_us : 0);
    apart_us_ = apart_us;
  }

  std::size_t layers() const { return times_us_.size() - 1; }

  /// The last layer that begins no later.
  std::size_t layer_at(double us) const {
    const auto next = std::upper_bound(times_us_.begin(), times_us_.end() - 1, us + apart_us_);
    return static_cast<std::size_t>(next - times_us_.begin()) - 1;
  }

  /// Of each node the layers in which data can be there and still be in time.
  void number_nodes() {
    graph_.num_nodes = 2;
    ranges_.resize(topology_.num_nodes());
    for (std::size_t n = 0; n < ranges_.size(); ++n) {
      if (!is_of_use(n) || NodeId(n) == target_) continue;
      Range& range = ranges_[n];
      range.first = layer_at(before_us_[n]);
      range.end = range.first;
      while (range.end < layers() && times_us_[range.end] + behind_us_[n] < us_) ++range.end;
      range.node = graph_.num_nodes;
      graph_.num_nodes += static_cast<int>(range.end - range.first);
    }
  }

  void add(int from, int to, double bytes) {
    graph_.arcs.push_back({from, to});
    capacity_.push_back(bytes / bytes_);
  }

  void add_waiting() {
    for (const Range& range : ranges_) {
      for (std::size_t i = range.first; i + 1 < range.end; ++i) add(range.at(i), range.at(i + 1), 2 * bytes_);
    }
  }

  void add_link(std::size_t l) {
    const Link& link = topology_.links()[l];
    const Range& from = ranges_[link.src.index()];
    const Range& to = ranges_[link.dst.index()];
    const double message_us = network_.delay_us[l] - link.latency_us;
    for (std::size_t i = from.first; i < from.end; ++i) {
      const double arrival_us = times_us_[i] + rounded_delay_us_[l];
      if (arrival_us >= us_ - apart_us_) break;
      int head = kTarget;
      if (link.dst != target_) {
        const std::size_t layer = std::max(to.first, layer_at(arrival_us));
        if (layer >= to.end) break;
        head = to.at(layer);
      }
      add(from.at(i), head, network_.carried(l, times_us_[i] + message_us, times_us_[i + 1] + message_us));
    }
  }

  void add_supplies() {
    first_supply_ = graph_.num_nodes;
    for (const Supply& supply : supplies_) {
      const int node = graph_.num_nodes++;
      add(kRoot, node, supply.bytes);
      for (const auto& [holder, ready_us] : supply.holders) {
        const Range& range = ranges_[holder.index()];
        const std::size_t layer = std::max(range.first, layer_at(ready_us));
        if (layer < range.end) add(node, range.at(layer), 2 * bytes_);
      }
    }
  }

  double opening(std::size_t n, const MinCut& found) const {
    const Range& range = ranges_[n];
    if (range.end == range.first) return us_;
    std::size_t i = range.first;
    while (i < range.end && !found.source_side[index(range.at(i))]) ++i;
    return times_us_[i];
  }

  struct Range {
    std::size_t first = 0;
    std::size_t end = 0;
    int node = 0;  ///< of the first
    int at(std::size_t layer) const { return node + static_cast<int>(layer - first); }
  };

  const TimedNetwork& network_;
  const Topology& topology_;
  const std::vector<Supply>& supplies_;
  NodeId target_;
  double us_;
  double bytes_ = 0;
  double apart_us_ = 0;
  std::vector<double> before_us_ = {};
  std::vector<double> behind_us_ = {};
  std::vector<double> times_us_ = {};  ///< when layers begin; at last `us_`
  std::vector<double> rounded_delay_us_ = {};
  std::vector<Range> ranges_ = {};
  int first_supply_ = 0;
  Digraph graph_ = {};
  std::vector<double> capacity_ = {};
};

}  // namespace

UnrolledCut unrolled_cut(const TimedNetwork& network, const std::vector<Supply>& supplies, NodeId target,
                         double us, std::size_t& work) {
  return Unrolled(network, supplies, target, us).cut(work);
}

}  // namespace rondo
