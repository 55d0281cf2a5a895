#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>

#include "rondo/core/certificate.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/units.hpp"
#include "rondo/core/version.hpp"
#include "search_loop.hpp"

namespace rondo {
namespace {

constexpr const char* kImprovementCheckpoint = "improvement";
/// Of the time that is left, what a restart may take.
constexpr double kShareOfRestart = 0.5;

}  // namespace

/// The best schedules of the portfolio, one a number of chunks; rerun where they are needed.
std::vector<ImprovementTask::Start> Search::starts_of_improvement(const Schedule& best) {
  std::vector<ImprovementTask::Start> starts;
  const std::vector<Trial>& trials = now_.state.trials;
  for (const std::size_t i : best_improvable(trials)) {
    starts.push_back({trials[i].candidate.chunks, trials[i].finish_us, [this, i, &best] {
                        return i == now_.state.best ? best : rerun(now_.state.trials[i].candidate);
                      }});
  }
  return starts;
}

/// By the list scheduler that has least work with it.
void Search::offer_restart_schedules(ImprovementTask& task) {
  const std::vector<Trial>& trials = now_.state.trials;
  double slowest_GBps = kInfinity;
  for (const Link& link : instance_.topology->links())
    slowest_GBps = std::min(slowest_GBps, link.bandwidth_GBps);
  // What whole chunks leave no room for, and one chunk more.
  task.restart_chunks = restart_counts(instance_.demand, options_, trials, bound_.us, [&](int chunks) {
    const double chunk_bytes = instance_.demand.contributions().front().bytes / chunks;
    return least_us(chunks) + transmission_us(chunk_bytes, slowest_GBps);
  });
  if (!task.restart_chunks.empty()) {
    double work = 0;
    for (const Trial& trial : trials) work += std::isfinite(trial.finish_us) ? trial.candidate.work : 0;
    const int chunks = task.restart_chunks.front();
    const double each = restart_candidate(engines_, instance_.demand, options_, trials, chunks, 0).work;
    task.restart_share =
        task.time_spent() / work * each / instance_.demand.with_chunks(chunks).num_deliveries();
  }
  task.restart = [this, &trials](int chunks, std::size_t variant,
                                 RestartLimits limits) -> std::optional<Schedule> {
    const Candidate candidate =
        restart_candidate(engines_, instance_.demand, options_, trials, chunks, variant);
    if (limits == RestartLimits::none) return rerun(candidate);
    std::optional<double> until_s = options_.time_limit_s;
    if (until_s) *until_s = clock_.seconds() + kShareOfRestart * (*until_s - clock_.seconds());
    return run_engine(candidate, until_s).schedule;
  };
}

/// Collective. Returns the number of chunks of `found`.
int Search::improve_winner(EngineResult& found) {
  const Trial& trial = now_.state.trials[now_.state.best];
  if (options_.improve_work <= 0 || !trial.improvable) return trial.candidate.chunks;
  ImprovementTask task{*instance_.topology, instance_.demand, bound_.us, options_.seed,
                       starts_of_improvement(*found.schedule)};
  task.most_chunks = most_chunks_of_improvement(instance_.demand, options_);
  task.work_limit = options_.time_limit_s ? kInfinity : options_.improve_work * (options_.gap ? 10 : 1);
  task.stop = [&](double finish_us) { return stop(finish_us); };
  if (options_.time_limit_s)
    task.time_spent = [&] { return communicator_.max(clock_.seconds()) / *options_.time_limit_s; };
  task.interrupted = [&] { return interrupted(); };
  task.least_us = [&](int chunks) { return least_us(chunks); };
  offer_restart_schedules(task);
  task.progress = [&](std::uint64_t rounds, int chunks, double finish_us) {
    if (!communicator_.is_root() || rounds % 16 != 0) return;
    progress_(fmt::format("improvement: {} rounds, {} chunks, {:.6g} us, gap {:.3f}%", rounds, chunks,
                          finish_us, 100 * (finish_us / bound_.us - 1)));
  };
  bool is_kept = true;
  task.keep = [&](const std::function<Bytes()>& state, bool ends) {
    if (ends && (is_kept || !interrupted())) return;
    // The portfolio is over: its last state goes first, so that a later start finds both.
    if (ends) {
      checkpoints_.keep(communicator_, kSearchCheckpoint, [&] { return pack(now_); });
      checkpoints_.keep(communicator_, kImprovementCheckpoint, state);
    } else {
      is_kept = checkpoints_.offer(communicator_, kImprovementCheckpoint, state);
    }
  };
  const double before_us = found.schedule->finish_us;
  Improvement improvement =
      improve(task, communicator_, checkpoints_.newest(communicator_, kImprovementCheckpoint));
  if (improvement.out_of_work && options_.gap) limits_hit_.push_back("work");
  if (improvement.out_of_time && limits_hit_.empty()) limits_hit_.push_back("time");
  found.metrics["improvement_tries"] = static_cast<double>(improvement.tries);
  found.metrics["improvement_successes"] = static_cast<double>(improvement.successes);
  found.metrics["finish_before_improvement_us"] = before_us;
  found.metrics["chunks_before_improvement"] = trial.candidate.chunks;
  if (!improvement.schedule) return trial.candidate.chunks;
  found.schedule = std::move(improvement.schedule);
  return improvement.chunks;
}

SynthesisResult Search::winner() {
  if (!std::isfinite(best_finish())) {
    if (first_error_) throw *first_error_;
    throw Error(
        ExitCode::unavailable,
        fmt::format("engine {} found no schedule before {} ended it; raise the limit or use --engine list",
                    options_.engine, limits_hit_.empty() ? "a limit" : limits_hit_.front()));
  }
  const SearchState& state = now_.state;
  const Candidate& candidate = state.trials[state.best].candidate;
  const bool have_it = communicator_.rank() == now_.best_rank;
  assert(!have_it || now_.mine.trial == state.best);
  EngineResult found = communicator_.size() == 1
                           ? *now_.mine.result
                           : unpack_result(communicator_.broadcast(
                                 have_it ? pack_result(*now_.mine.result) : Bytes{}, now_.best_rank));
  const Stopwatch improvement_clock;
  const double before_us = found.schedule->finish_us;
  const int chunks = improve_winner(found);
  const bool is_of_trial = found.schedule->finish_us == before_us && chunks == candidate.chunks;
  const Demand demand = instance_.demand.with_chunks(chunks);
  SynthesisResult result{{*instance_.topology, demand, std::move(*found.schedule), bound_, producer()}};
  result.wall_parts_s["improvement"] = improvement_clock.seconds();
  result.engine = label(candidate);
  result.is_replayed = is_of_trial && state.best >= trials_of_checkpoint_;
  result.seed = candidate.seed;
  result.metrics = std::move(found.metrics);
  result.remarks = std::move(found.remarks);
  limits_hit_.insert(limits_hit_.end(), found.limits_hit.begin(), found.limits_hit.end());
  result.limits_hit = limits_hit_;
  for (const Trial& trial : best_by_engine(state.trials))
    result.candidates.push_back({label(trial.candidate), trial.candidate.chunks, trial.finish_us});
  result.by_chunks = best_by_chunks(state.trials);
  const Schedule& schedule = result.proven.schedule;
  result.by_chunks[chunks] = {schedule.finish_us, schedule.sends.size(),
                              most_sends_on_a_link(schedule, *instance_.topology)};
  return result;
}

}  // namespace rondo
