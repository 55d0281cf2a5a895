#include <algorithm>
#include <utility>

#include "rondo/core/near_groups.hpp"
#include "rondo/engines/exchange.hpp"

namespace rondo {
namespace {

constexpr double kMostTried = 4e6;  ///< messages weighed in choosing the sizes of groups

}  // namespace

std::optional<ExchangeLevels> best_levels(const ExchangeProblem& problem,
                                          std::vector<std::vector<int>> tried) {
  std::ranges::stable_sort(tried, {}, [](const std::vector<int>& radices) { return radices.size(); });
  std::optional<ExchangeLevels> best;
  double work = 0;
  const auto offer = [&](const std::vector<int>& radices, std::vector<std::vector<GpuId>> members) {
    work += static_cast<double>(problem.hops.hops().size() * radices.size());
    const ExchangeProblem ordered{problem.topology,       problem.hops,   members,
                                  problem.chunks_a_place, problem.demand, problem.concurrency,
                                  problem.in_pairs};
    const std::optional<Schedule> schedule = exchange(ordered, radices);
    if (schedule && (!best || schedule->finish_us < best->finish_us))
      best = {radices, std::move(members), schedule->finish_us};
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
