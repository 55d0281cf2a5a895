#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <tuple>

#include "look_ahead_layout.hpp"
#include "rondo/formulations/formulations.hpp"

/// Columns, for chunk c, path w, node n, destination d and epoch k of the round:
///
// clang-format off
///   start(c, w, k)   1 where c starts on w in epoch k; binary. Starts that land after the round are the look-ahead
///                    variables Q of TE-CCL, appendix D: they may land any number of rounds later.
///   held(c, n, k)    1 where n, which received c in this round, can send it in epoch k: the buffers
///   near(c, d, n)    1 where the destination d, not reached in this round, will be served from n: TE-CCL's P
///
/// Rows:
///
///   sum of start(c, w, k) over paths w into one group of nodes <= 1
///       a second arrival of a chunk serves nothing
///   held(c, n, k) = held(c, n, k - 1) + sum over paths w into n of start(c, w, k - landing(w))
///   sum over k' <= k of start(c, w, k') <= held(c, source(w), k)
///       where the source of w does not hold c from the beginning
///   sum of the starts that occupy a link at an instant <= 1
///       for every instant at which a chunk may start on the link
///   near(c, d, n) <= sum of starts of c into n
///   sum over n of near(c, d, n) + sum of starts of c into d <= 1
// clang-format on
///
/// Objective, minimised: the negative worth of the round. Reaching a destination is worth the epochs that it
/// saves against the nearest holder sending at the end of the round, plus the epochs of a round, because a
/// delivered chunk no longer needs links. Coming nearer to a destination is worth gamma times the epochs of
/// alpha-beta distance saved.
namespace rondo {
namespace {

/// A pseudo-random number in [0, 1) for a column: equal worths slow branch and bound down.
double jitter(std::size_t c, std::size_t w, int k) {
  auto x = (c * 0x9e3779b97f4a7c15ULL) ^ (w * 0xc2b2ae3d27d4eb4fULL) ^
           (static_cast<std::uint64_t>(k) * 0x165667b19e3779f9ULL);
  x ^= x >> 29;
  x *= 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 32;
  return static_cast<double>(x >> 11) * 0x1p-53;
}

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
    while (begin < near.size()) {  // group by group of equal (chunk, destination)
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

  /// As in multicast_milp.cpp, rows are needed only for instants at which a chunk may start on the link.
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
