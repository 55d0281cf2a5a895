#include "join.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <utility>

#include "chunk_counts.hpp"
#include "rondo/core/relay_memory.hpp"
#include "rondo/decomp/free_group.hpp"
#include "rondo/local_search/joining.hpp"
#include "step_rules.hpp"

namespace rondo {
namespace {

/// Chunks over hops that joining places for each try of --improve-work, ten times as many with --gap.
constexpr double kPlacedPerTry = 20;
/// Of the portfolio's schedules in one chunk, those that end at different times.
constexpr std::size_t kMostInOneChunk = 6;
/// Beyond so many deliveries they take too long to make again.
constexpr double kMostDeliveries = 1e5;

/// What goes together takes other memory of relays.
bool joins(const Problem& problem) {
  return may_join(problem) && !has_limited_relays(*problem.topology, problem.demand);
}

/// The trivial one where images of links share bandwidth.
FreeGroup automorphisms(const Problem& problem) {
  const Topology& topology = *problem.topology;
  if (!problem.options.symmetry || !topology.shared_bandwidth().empty()) return FreeGroup::trivial(topology);
  return find_free_group(topology, demand_pattern(problem.demand));
}

}  // namespace

std::vector<Incumbent> starts_of_joining(const Problem& problem, EngineRunner& runner,
                                         const SearchState& state) {
  if (!joins(problem) || problem.demand.with_chunks(1).num_deliveries() > kMostDeliveries) return {};
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < state.trials.size(); ++i) {
    if (state.trials[i].candidate.chunks == 1 && std::isfinite(state.trials[i].finish_us)) order.push_back(i);
  }
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return state.trials[i].finish_us; });
  std::vector<Incumbent> starts;
  std::set<double> finish_us;
  for (const std::size_t i : order) {
    if (starts.size() == kMostInOneChunk) break;
    const Candidate& candidate = state.trials[i].candidate;
    if (i == state.best || !finish_us.insert(state.trials[i].finish_us).second) continue;
    Incumbent start{.chunks = candidate.chunks, .engine = runner.label(candidate), .seed = candidate.seed};
    start.found.schedule = runner.rerun(candidate);
    starts.push_back(std::move(start));
  }
  return starts;
}

void join(const Problem& problem, Incumbent& best, std::vector<Incumbent> others, StopRule& rule,
          const RunContext& context) {
  if (!joins(problem) || rule.stop(best.found.schedule->finish_us)) return;
  const SolveOptions& options = problem.options;
  const FreeGroup group = automorphisms(problem);
  JoiningTask task{*problem.topology, problem.demand, {{best.chunks, *best.found.schedule}}, group};
  for (Incumbent& other : others)
    task.starts.push_back({other.chunks, *std::exchange(other.found.schedule, std::nullopt)});
  if (options.chunks == 0) task.most_chunks = most_chunks_of_improvement(problem.demand, options);
  task.concurrency = options.concurrency;
  task.seed = options.seed;
  task.work_limit =
      options.time_limit_s ? kInfinity : kPlacedPerTry * options.improve_work * (options.gap ? 10 : 1);
  task.stop = [&](double finish_us) { return rule.stop(finish_us); };
  task.progress = [&](std::uint64_t rounds, double finish_us) {
    if (rounds % 4 != 0) return;
    context.tell(fmt::format("joining: {} rounds, {:.6g} us, gap {:.3f}%", rounds, finish_us,
                             100 * (finish_us / rule.bound().us - 1)));
  };
  Joining joining = join_transfers(task, context.communicator);
  EngineResult& found = best.found;
  found.metrics["joining_tries"] = static_cast<double>(joining.tries);
  found.metrics["finish_before_joining_us"] = found.schedule->finish_us;
  if (!joining.schedule) return;
  found.schedule = std::move(joining.schedule);
  best.chunks = joining.chunks;
  best.is_replayed = false;
  if (joining.start == 0) return;
  const Incumbent& origin = others[joining.start - 1];
  best.engine = origin.engine;
  best.seed = origin.seed;
}

}  // namespace rondo
