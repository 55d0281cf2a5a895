#include <algorithm>
#include <utility>

#include "rondo/core/near_groups.hpp"
#include "rondo/engines/exchange.hpp"

namespace rondo {
namespace {

constexpr double kMostTried = 4e6;  ///< messages weighed in choosing the sizes of groups

ExchangeProblem with_members(const ExchangeProblem& problem, std::vector<std::vector<GpuId>> members) {
  return {problem.topology, problem.hops,        std::move(members), problem.chunks_a_place,
          problem.demand,   problem.concurrency, problem.in_pairs};
}

}  // namespace

std::optional<Schedule> exchange(const ExchangeProblem& problem, const ExchangeLevels& levels) {
  const ExchangeProblem ordered = with_members(problem, levels.members);
  if (levels.by_copies) {
    // In many chunks it may not be worth the time.
    if (std::optional<Schedule> schedule = exchange_by_copies(ordered, levels.radices)) return schedule;
  }
  return exchange(ordered, levels.radices);
}

std::optional<ExchangeLevels> best_levels(const ExchangeProblem& problem,
                                          std::vector<std::vector<int>> tried) {
  std::ranges::stable_sort(tried, {}, [](const std::vector<int>& radices) { return radices.size(); });
  std::optional<ExchangeLevels> best;
  double work = 0;
  const bool copies = can_exchange_by_copies(problem);
  const auto offer = [&](const std::vector<int>& radices, const std::vector<std::vector<GpuId>>& members) {
    work += static_cast<double>(problem.hops.hops().size() * radices.size());
    const ExchangeProblem ordered = with_members(problem, members);
    const auto keep_if_better = [&](const std::optional<Schedule>& schedule, bool by_copies) {
      if (schedule && (!best || schedule->finish_us < best->finish_us))
        best = {radices, members, by_copies, schedule->finish_us};
    };
    keep_if_better(exchange(ordered, radices), false);
    if (copies) keep_if_better(exchange_by_copies(ordered, radices), true);
  };
  for (const std::vector<int>& radices : tried) {
    if (work > kMostTried) break;
    offer(radices, problem.members);
    if (problem.members.size() > 1 || problem.in_pairs) continue;
    const std::vector<GpuId>& members = problem.members.front();
    auto near = ordered_by_nearness(problem.hops, members, radices, problem.demand.bytes(ChunkId{0}));
    if (near && *near != members) offer(radices, {*std::move(near)});
  }
  return best;
}

std::vector<std::vector<int>> ordered_factorisations(int count) {
  std::vector<std::vector<int>> all{{count}};
  for (int first = 2; first <= count / 2; ++first) {
    if (count % first != 0) continue;
    for (std::vector<int> rest : ordered_factorisations(count / first)) {
      rest.insert(rest.begin(), first);
      all.push_back(std::move(rest));
    }
  }
  return all;
}

}  // namespace rondo
