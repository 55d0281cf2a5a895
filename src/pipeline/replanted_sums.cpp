#include "replanted_sums.hpp"

#include <cstddef>
#include <optional>
#include <utility>

#include "reordered_sums.hpp"
#include "replayed.hpp"
#include "rondo/local_search/replanting_sums.hpp"

namespace rondo {
namespace {

/// Larger schedules stay as they are.
constexpr std::size_t kMostSendsToReplant = 400'000;
/// Times the work of local search elsewhere: rounds end once they gain little. More where a gap or time ends
/// them.
constexpr double kTimesTheWork = 4;
constexpr double kTimesTheWorkWithLimit = 10;

}  // namespace

void replant_sums(const Problem& problem, Incumbent& best, StopRule& rule, const RunContext& context) {
  const SolveOptions& options = problem.options;
  const Schedule& before = *best.found.schedule;
  const std::size_t sends = before.sends.size();
  const auto ends = [&](double finish_us) {
    return rule.stop(finish_us) || !has_time_for_sums(problem, sends, context);
  };
  if (options.improve_work <= 0 || sends > kMostSendsToReplant ||
      !may_replant_sums(*problem.topology, problem.demand) || ends(before.finish_us))
    return;
  const Demand demand = problem.demand.with_chunks(best.chunks);
  std::optional<Schedule> found = replanted_sums(
      {.topology = *problem.topology,
       .demand = demand,
       .schedule = before,
       .bound_us = rule.bound().us,
       .seed = options.seed,
       .concurrency = options.concurrency,
       .work_limit = options.improve_work *
                     (options.gap || options.time_limit_s ? kTimesTheWorkWithLimit : kTimesTheWork),
       .stop = ends,
       .deadline = rule.deadline()},
      context.communicator);
  if (found) found = accepted(*problem.topology, demand, *std::move(found));
  if (!found || found->finish_us >= before.finish_us) return;
  best.found.metrics["finish_before_improvement_us"] = before.finish_us;
  best.found.metrics["chunks_before_improvement"] = best.chunks;
  best.found.schedule = std::move(found);
  best.is_replayed = true;
}

}  // namespace rondo
