#include <algorithm>
#include <map>

#include "rondo/core/index.hpp"
#include "rondo/engines/synchronous.hpp"

namespace rondo {
namespace {

/// Work of the search for automorphisms: images of GPUs that are tried.
constexpr int kMostImages = 200'000;

class TurnSearch {
 public:
  explicit TurnSearch(const StepInstance& instance)
      : in_(instance),
        chunks_(index(in_.num_gpus), std::vector<int>(index(in_.num_gpus), 0)),
        arc_(chunks_.size(), std::vector<int>(chunks_.size(), -1)) {
    for (std::size_t b = 0; b < in_.bounds.size(); ++b) {
      const StepBound& bound = in_.bounds[b];
      is_plain_ = is_plain_ && bound.arcs.size() == 1 && bound.arcs.front() == static_cast<int>(b);
    }
    for (std::size_t a = 0; is_plain_ && a < in_.arcs.size(); ++a) {
      const StepArc& arc = in_.arcs[a];
      int& known = arc_[index(arc.from)][index(arc.to)];
      is_plain_ = known < 0;  // parallel arcs are not told apart
      known = static_cast<int>(a);
      chunks_[index(arc.from)][index(arc.to)] = in_.bounds[a].chunks;
    }
    for (std::size_t d = 0; d < in_.data.size(); ++d) data_[key(in_.data[d])] = static_cast<int>(d);
    is_plain_ = is_plain_ && data_.size() == in_.data.size() && in_.bounds.size() == in_.arcs.size();
  }

  std::optional<StepTurn> run() {
    if (is_plain_) extend();
    return std::move(best_);
  }

 private:
  using Key = std::pair<int, std::vector<int>>;
  static Key key(const StepDatum& datum) {
    Key key{datum.origin, datum.wanted};
    std::ranges::sort(key.second);
    return key;
  }

  void extend() {
    const std::size_t g = image_.size();
    if (g == chunks_.size()) {
      consider();
      return;
    }
    for (int to = 0; to < in_.num_gpus && tried_ < kMostImages; ++to) {
      ++tried_;
      if (to == static_cast<int>(g) || std::ranges::find(image_, to) != image_.end()) continue;
      bool fits = true;
      for (std::size_t other = 0; fits && other < g; ++other) {
        const std::size_t there = index(image_[other]);
        fits =
            chunks_[g][other] == chunks_[index(to)][there] && chunks_[other][g] == chunks_[there][index(to)];
      }
      if (!fits) continue;
      image_.push_back(to);
      extend();
      image_.pop_back();
    }
  }

  /// GPUs till the first one comes back; 0 where others come back sooner or later.
  int order() const {
    const auto cycle = [&](int first) {
      int length = 1;
      for (int g = image_[index(first)]; g != first; g = image_[index(g)]) ++length;
      return length;
    };
    for (int g = 1; g < in_.num_gpus; ++g) {
      if (cycle(g) != cycle(0)) return 0;
    }
    return cycle(0);
  }

  void consider() {
    StepTurn turn{.order = order(), .gpu = image_};
    if (turn.order <= (best_ ? best_->order : 1)) return;
    for (const StepDatum& datum : in_.data) {
      StepDatum moved{.origin = image_[index(datum.origin)]};
      for (const int g : datum.wanted) moved.wanted.push_back(image_[index(g)]);
      const auto found = data_.find(key(moved));
      if (found == data_.end()) return;
      turn.datum.push_back(found->second);
    }
    for (const StepArc& arc : in_.arcs)
      turn.arc.push_back(arc_[index(image_[index(arc.from)])][index(image_[index(arc.to)])]);
    turn.is_first_bound.assign(in_.bounds.size(), true);
    for (std::size_t a = 0; a < in_.arcs.size(); ++a) {
      if (!turn.is_first_bound[a]) continue;
      for (std::size_t b = index(turn.arc[a]); b != a; b = index(turn.arc[b])) turn.is_first_bound[b] = false;
    }
    best_ = std::move(turn);
  }

  const StepInstance& in_;
  std::vector<std::vector<int>> chunks_;  ///< of a round, by both ends; 0: no arc
  std::vector<std::vector<int>> arc_;     ///< -1: none
  std::map<Key, int> data_;
  bool is_plain_ = true;  ///< one bound an arc, and nothing twice
  std::vector<int> image_;
  int tried_ = 0;
  std::optional<StepTurn> best_;
};

}  // namespace

std::optional<StepTurn> find_turn(const StepInstance& instance) {
  return TurnSearch(instance).run();
}

}  // namespace rondo
