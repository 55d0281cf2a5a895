#include "look_ahead_layout.hpp"

namespace rondo {
namespace {

constexpr double kNoDistance = 1e-6;

}  // namespace

RoundLayout::RoundLayout(const RoundProblem& problem)
    : problem_(problem), paths_into_(index(problem.num_nodes)) {
  for (std::size_t w = 0; w < problem.paths.size(); ++w)
    paths_into_[index(problem.paths[w].dst)].push_back(static_cast<int>(w));
  find_blocked_epochs();
  start_.resize(problem.chunks.size() * problem.paths.size());
  held_.resize(problem.chunks.size() * index(problem.num_nodes));
  for (std::size_t c = 0; c < problem.chunks.size(); ++c) lay_out_chunk(c);
}

void RoundLayout::find_blocked_epochs() {
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

void RoundLayout::lay_out_chunk(std::size_t c) {
  const auto& chunk = problem_.chunks[c];
  const std::vector<int> at = earliest_epochs(problem_, chunk);
  std::vector<char> closed(index(problem_.num_nodes), 0);  // by group: a node of it has the chunk
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

}  // namespace rondo
