#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <tuple>

#include "rondo/formulations/formulations.hpp"

/// Columns, for chunk c, way w, node n and epochs k of the round:
///
///   start(c, w, k)   1 where c sets out on w in epoch k. Binary. Those that land after the round are the
///   look-ahead
///                    variables Q of TE-CCL, appendix D: they may land any number of rounds later.
///   held(c, n, k)    1 where n, which received c in this round, can send it in epoch k: the buffers
///   near(c, d, n)    1 where the destination d, not reached in this round, will be served from n: TE-CCL's P
///
/// Rows:
///
///   sum of start(c, w, k) over the ways into one group of nodes <= 1              a second arrival serves
///   nothing held(c, n, k) = held(c, n, k - 1) + sum over ways into n of start(c, w, k - landing) sum over k'
///   <= k of start(c, w, k') <= held(c, source(w), k)                  where the source is no holder sum of
///   the starts that are on a link at an instant <= 1                       for every instant at which one
///   may start near(c, d, n) <= sum of starts of c into n;  sum over n of near(c, d, n) + sum of starts of c
///   into d <= 1
///
/// Objective, minimised: the negative worth. Reaching a destination is worth the epochs that it spares
/// against the nearest holder sending at the end of the round, and as many as the round has besides, since
/// what is delivered takes no more room on links; coming nearer to one is worth gamma times the epochs of
/// alpha-beta distance won.
namespace rondo {
namespace {

constexpr double kNoDistance = 1e-6;

/// In [0, 1), from a column's place: equal worths make branch and bound wander.
double jitter(std::size_t c, std::size_t w, int k) {
  auto x = (c * 0x9e3779b97f4a7c15ULL) ^ (w * 0xc2b2ae3d27d4eb4fULL) ^
           (static_cast<std::uint64_t>(k) * 0x165667b19e3779f9ULL);
  x ^= x >> 29;
  x *= 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 32;
  return static_cast<double>(x >> 11) * 0x1p-53;
}

std::size_t index(int i) {
  return static_cast<std::size_t>(i);
}

/// Which columns there are, and where.
class RoundLayout {
 public:
  explicit RoundLayout(const RoundProblem& problem)
      : problem_(problem), paths_into_(index(problem.num_nodes)) {
    for (std::size_t w = 0; w < problem.paths.size(); ++w)
      paths_into_[index(problem.paths[w].dst)].push_back(static_cast<int>(w));
    find_blocked_epochs();
    start_.resize(problem.chunks.size() * problem.paths.size());
    held_.resize(problem.chunks.size() * index(problem.num_nodes));
    for (std::size_t c = 0; c < problem.chunks.size(); ++c) lay_out_chunk(c);
  }

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
    double epochs;  ///< won
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

  void find_blocked_epochs() {
    const auto epochs = index(problem_.num_epochs);
    may_start_.assign(problem_.paths.size() * epochs, 1);
    std::vector<std::vector<RoundProblem::Blocked>> of_link(index(problem_.num_links));
    for (const auto& blocked : problem_.blocked) of_link[index(blocked.link)].push_back(blocked);
    const double slack_us = 1e-6 * problem_.tau_us;
    for (std::size_t w = 0; w < problem_.paths.size(); ++w) {
      for (int k = 0; k < problem_.num_epochs; ++k) {
        if (k % problem_.paths[w].period != problem_.paths[w].phase) may_start_[w * epochs + index(k)] = 0;
      }
      for (const auto& use : problem_.paths[w].links) {
        for (const auto& blocked : of_link[index(use.link)]) {
          for (std::size_t k = 0; k < epochs; ++k) {
            const double begin = static_cast<double>(k) * problem_.tau_us + use.offset_us;
            if (begin + slack_us < blocked.end_us && begin + use.duration_us > blocked.begin_us + slack_us)
              may_start_[w * epochs + k] = 0;
          }
        }
      }
    }
  }

  void lay_out_chunk(std::size_t c) {
    const auto& chunk = problem_.chunks[c];
    const std::vector<int> at = earliest_epochs(problem_, chunk);
    std::vector<char> closed(index(problem_.num_nodes), 0);  // by group: somebody there has it
    for (const auto& h : chunk.holders) closed[index(group(h.node))] = 1;
    std::vector<char> useful(index(problem_.num_nodes), 0);
    for (int n = 0; n < problem_.num_nodes; ++n) {
      useful[index(n)] = std::any_of(chunk.unmet.begin(), chunk.unmet.end(), [&](int d) {
        return d == n || distance(n, d) < distance_now(c, d) - kNoDistance;
      });
    }
    for (std::size_t w = 0; w < problem_.paths.size(); ++w) {
      const auto& path = problem_.paths[w];
      if (closed[index(group(path.dst))] || !useful[index(path.dst)] ||
          at[index(path.src)] >= problem_.num_epochs)
        continue;
      if (!is_holder(c, path.src) && !useful[index(path.src)]) continue;
      Starts& starts = start_[c * problem_.paths.size() + w];
      starts.first = at[index(path.src)];
      for (int k = starts.first; k < problem_.num_epochs; ++k) {
        starts.column.push_back(may_start_[w * index(problem_.num_epochs) + index(k)] != 0 ? columns_++ : -1);
      }
    }
    std::vector<char> sends(index(problem_.num_nodes), 0);
    for (std::size_t w = 0; w < problem_.paths.size(); ++w) {
      if (!start_[c * problem_.paths.size() + w].column.empty()) sends[index(problem_.paths[w].src)] = 1;
    }
    for (int n = 0; n < problem_.num_nodes; ++n) {
      auto& [first, base] = held_[c * index(problem_.num_nodes) + index(n)];
      first = kNeverEpoch;
      if (is_holder(c, n) || !sends[index(n)]) continue;
      first = at[index(n)];
      base = columns_;
      columns_ += std::max(0, problem_.num_epochs - first);
    }
    for (const int d : chunk.unmet) {
      const double now = distance_now(c, d);
      for (int n = 0; n < problem_.num_nodes; ++n) {
        if (n == d || closed[index(group(n))] || at[index(n)] >= kNeverEpoch) continue;
        const double won = now - distance(n, d);
        if (won > kNoDistance) near_.push_back({c, d, n, columns_++, won});
      }
    }
  }

  const RoundProblem problem_;
  std::vector<std::vector<int>> paths_into_;
  std::vector<char> may_start_;  ///< way x epoch
  std::vector<Starts> start_;    ///< chunk x way
  struct Held {
    int first = kNeverEpoch;
    int base = 0;
  };
  std::vector<Held> held_;  ///< chunk x node
  std::vector<Near> near_;
  int columns_ = 0;
};

class RoundBuilder {
 public:
  explicit RoundBuilder(const RoundLayout& layout) : layout_(layout), problem_(layout.problem()) {}

  LinearModel build() {
    for (int j = 0; j < layout_.num_columns(); ++j) model_.add_column(0, 1, 0);
    for (std::size_t c = 0; c < problem_.chunks.size(); ++c) {
      add_worth(c);
      add_receive_once(c);
      add_buffers(c);
    }
    add_near();
    add_links();
    return std::move(model_);
  }

 private:
  void add_worth(std::size_t c) {
    const int epochs = problem_.num_epochs;
    for (int n = 0; n < problem_.num_nodes; ++n) {
      const auto& unmet = problem_.chunks[c].unmet;
      const bool wanted = std::binary_search(unmet.begin(), unmet.end(), n);
      const double now = wanted ? layout_.distance_now(c, n) : 0;
      layout_.for_each_start_into(c, n, [&](std::size_t w, int k, int column) {
        model_.integer[index(column)] = 1;
        const double worth = wanted ? 2 * epochs + now - (k + problem_.paths[w].landing) : -1e-3 * (1 + k);
        model_.cost[index(column)] = -worth - 1e-4 * jitter(c, w, k);
      });
    }
  }

  void add_receive_once(std::size_t c) {
    std::vector<int> row_of_group(index(problem_.num_nodes), -1);
    for (int n = 0; n < problem_.num_nodes; ++n) {
      int& row = row_of_group[index(layout_.group(n))];
      layout_.for_each_start_into(c, n, [&](std::size_t, int, int column) {
        if (row < 0) row = model_.add_row(-kInfinity, 1);
        model_.add_entry(row, column, 1);
      });
    }
  }

  void add_buffers(std::size_t c) {
    for (int n = 0; n < problem_.num_nodes; ++n) {
      for (int k = layout_.first_held(c, n); k < problem_.num_epochs; ++k) {
        const int row = model_.add_row(0, 0);
        model_.add_entry(row, layout_.held(c, n, k), 1);
        if (layout_.held(c, n, k - 1) >= 0) model_.add_entry(row, layout_.held(c, n, k - 1), -1);
        for (const int w : layout_.paths_into(n)) {
          const int column = layout_.start(c, index(w), k - problem_.paths[index(w)].landing);
          if (column >= 0) model_.add_entry(row, column, -1);
        }
      }
    }
    for (std::size_t w = 0; w < problem_.paths.size(); ++w) {
      const int src = problem_.paths[w].src;
      for (int k = layout_.first_held(c, src); k < problem_.num_epochs; ++k) {
        if (layout_.start(c, w, k) < 0) continue;
        const int row = model_.add_row(-kInfinity, 0);
        model_.add_entry(row, layout_.held(c, src, k), -1);
        for (int earlier = layout_.first_start(c, w); earlier <= k; ++earlier) {
          if (layout_.start(c, w, earlier) >= 0) model_.add_entry(row, layout_.start(c, w, earlier), 1);
        }
      }
    }
  }

  void add_near() {
    std::size_t begin = 0;
    const auto& near = layout_.near();
    while (begin < near.size()) {  // one (chunk, destination) after the other
      std::size_t end = begin;
      const int served = model_.add_row(-kInfinity, 1);
      for (; end < near.size() && near[end].chunk == near[begin].chunk &&
             near[end].destination == near[begin].destination;
           ++end) {
        const auto& from = near[end];
        model_.cost[index(from.column)] = -problem_.gamma * from.epochs;
        model_.add_entry(served, from.column, 1);
        const int row = model_.add_row(-kInfinity, 0);
        model_.add_entry(row, from.column, 1);
        layout_.for_each_start_into(from.chunk, from.node,
                                    [&](std::size_t, int, int column) { model_.add_entry(row, column, -1); });
      }
      layout_.for_each_start_into(near[begin].chunk, near[begin].destination,
                                  [&](std::size_t, int, int column) { model_.add_entry(served, column, 1); });
      begin = end;
    }
  }

  /// As in multicast_milp.cpp: it is enough to look at the instants at which something may start on the link.
  void add_links() {
    struct Use {
      std::size_t path;
      double offset_us, duration_us;
    };
    std::vector<std::vector<Use>> uses(index(problem_.num_links));
    for (std::size_t w = 0; w < problem_.paths.size(); ++w) {
      for (const auto& use : problem_.paths[w].links)
        uses[index(use.link)].push_back({w, use.offset_us, use.duration_us});
    }
    const double slack_us = 1e-9 * problem_.tau_us * (1 + problem_.num_epochs);
    for (const auto& on_link : uses) {
      std::vector<double> offsets;
      for (const Use& use : on_link) offsets.push_back(use.offset_us);
      std::sort(offsets.begin(), offsets.end());
      offsets.erase(
          std::unique(offsets.begin(), offsets.end(), [&](double a, double b) { return b - a <= slack_us; }),
          offsets.end());
      for (const double offset : offsets) {
        for (int epoch = 0; epoch < problem_.num_epochs; ++epoch)
          add_instant(on_link, epoch * problem_.tau_us + offset, slack_us);
      }
    }
  }

  template <class Uses>
  void add_instant(const Uses& on_link, double instant_us, double slack_us) {
    std::vector<int> columns;
    for (const auto& use : on_link) {
      const int last =
          static_cast<int>(std::floor((instant_us - use.offset_us + slack_us) / problem_.tau_us));
      for (int k = std::min(last, problem_.num_epochs - 1);
           k >= 0 && k * problem_.tau_us + use.offset_us + use.duration_us > instant_us + slack_us; --k) {
        for (std::size_t c = 0; c < problem_.chunks.size(); ++c) {
          if (const int column = layout_.start(c, use.path, k); column >= 0) columns.push_back(column);
        }
      }
    }
    if (columns.size() < 2) return;
    const int row = model_.add_row(-kInfinity, 1);
    for (const int column : columns) model_.add_entry(row, column, 1);
  }

  const RoundLayout& layout_;
  const RoundProblem& problem_;
  LinearModel model_;
};

std::vector<RoundStart> decode(const RoundLayout& layout, const Solution& solution) {
  std::vector<RoundStart> starts;
  for (std::size_t c = 0; c < layout.problem().chunks.size(); ++c) {
    for (int n = 0; n < layout.problem().num_nodes; ++n) {
      layout.for_each_start_into(c, n, [&](std::size_t w, int k, int column) {
        if (solution.x[index(column)] > 0.5) starts.push_back({static_cast<int>(c), static_cast<int>(w), k});
      });
    }
  }
  std::sort(starts.begin(), starts.end(), [](const RoundStart& a, const RoundStart& b) {
    return std::tie(a.epoch, a.chunk, a.path) < std::tie(b.epoch, b.chunk, b.path);
  });
  return starts;
}

std::optional<std::vector<double>> encode(const RoundLayout& layout, const LinearModel& model,
                                          const std::vector<RoundStart>& starts) {
  const RoundProblem& problem = layout.problem();
  std::vector<double> x(model.cost.size(), 0.0);
  for (const RoundStart& start : starts) {
    const int column = layout.start(index(start.chunk), index(start.path), start.epoch);
    if (column < 0) return std::nullopt;
    x[index(column)] = 1;
    const auto& path = problem.paths[index(start.path)];
    for (int k = start.epoch + path.landing; k < problem.num_epochs; ++k) {
      if (const int held = layout.held(index(start.chunk), path.dst, k); held >= 0) x[index(held)] += 1;
    }
  }
  const auto received = [&](std::size_t c, int n) {
    double sum = 0;
    layout.for_each_start_into(c, n, [&](std::size_t, int, int column) { sum += x[index(column)]; });
    return sum > 0.5;
  };
  const auto& near = layout.near();
  for (std::size_t i = 0; i < near.size();) {
    const std::size_t begin = i;
    const RoundLayout::Near* best = nullptr;
    for (; i < near.size() && near[i].chunk == near[begin].chunk &&
           near[i].destination == near[begin].destination;
         ++i) {
      if (received(near[i].chunk, near[i].node) && (!best || near[i].epochs > best->epochs)) best = &near[i];
    }
    if (best && !received(best->chunk, best->destination)) x[index(best->column)] = 1;
  }
  if (max_violation(model, x) > kFeasibilityTolerance) return std::nullopt;
  return x;
}

}  // namespace

BuiltRound look_ahead_round(const RoundProblem& problem) {
  const auto layout = std::make_shared<const RoundLayout>(problem);
  const auto model = std::make_shared<const LinearModel>(RoundBuilder(*layout).build());
  BuiltRound built;
  built.model = *model;
  built.decode = [layout](const Solution& solution) { return decode(*layout, solution); };
  built.encode = [layout, model](const std::vector<RoundStart>& starts) {
    return encode(*layout, *model, starts);
  };
  return built;
}

}  // namespace rondo
