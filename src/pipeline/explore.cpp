#include "explore.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "chunk_counts.hpp"
#include "explorer.hpp"
#include "last_resort.hpp"
#include "more_chunks.hpp"
#include "rondo/core/error.hpp"
#include "step_rules.hpp"

namespace rondo {
namespace {

/// Of the time limit; an engine that gives up later has met a limit.
constexpr double kTimeOfRefusals = 0.25;
/// A gap at which a kept schedule need not be rerouted where that is more work than all else.
constexpr double kNearWithoutRerouting = 5e-3;
/// What list scheduling takes, in times of another last resort.
constexpr double kTimesOfList = 10;
/// Of the time limit: what the best candidate may take in more chunks than there was time to try, and of what
/// is left of that, the most that it is expected to take in one number of chunks.
constexpr double kShareOfMoreChunks = 0.1;
constexpr double kShareOfOneCount = 0.5;
/// How many times as late as what is to be beaten a schedule may end that other seeds still make earlier.
constexpr double kReachOfSeeds = 1.02;
/// Of what pipelines, the share of the finish time that twice as many chunks have to gain.
constexpr double kWorthTwiceAsMany = 2e-3;
/// Of variants of the best candidates, where there are streams for many ranks.
constexpr std::int64_t kMostRoundsInBatch = 6;

}  // namespace

/// Collective. Engines that do not support a problem say so at once, or where they have not begun to solve.
bool Explorer::ran_out_of_time(const Error& error) {
  return error.code() == ExitCode::unavailable && problem_.options.time_limit_s &&
         !find_engine_or_auto(problem_.options.engine).answers && rule_.time_share() >= kTimeOfRefusals;
}

/// Collective. A time limit came before any schedule: the quickest engine may take the rest of the time.
void Explorer::fall_back() {
  if (!problem_.options.time_limit_s || std::isfinite(best_finish_us()) || context_.interrupted()) return;
  if (problem_.options.engine == "list" || find_engine_or_auto(problem_.options.engine).answers) return;
  if (problem_.sketch || (first_error_ && !ran_out_of_time(*first_error_))) return;
  rule_.hit("time");
  falls_back_ = true;
  const std::string engine = last_resort(problem_).engine;
  const double began_s = context_.seconds();
  run_batch({runner_.add(engine)});
  const double now_s = context_.seconds();
  if (engine != "list" && *problem_.options.time_limit_s - now_s > kTimesOfList * (now_s - began_s))
    run_batch({runner_.add("list")});
  if (!std::isfinite(best_finish_us()) || !now_.mine.result) return;
  const std::string& found_by = runner_.engine_of(now_.state.trials[now_.state.best].candidate).name;
  now_.mine.result->remarks.push_back(fmt::format("engine {} found no schedule in time; this is engine {}'s",
                                                  problem_.options.engine, found_by));
}

bool Explorer::improvement_follows() const {
  const SearchState& state = now_.state;
  if (state.best >= state.trials.size()) return false;
  return may_join(problem_) || (may_improve(problem_) && !best_improvable(state.trials).empty());
}

/// Collective. Whether there was enough of varying the best candidates.
bool Explorer::work_is_done(std::size_t num_first_batches) {
  const SearchState& state = now_.state;
  const SolveOptions& options = problem_.options;
  // Most of the time, and ten times the work, go to the improvement where there is one.
  const bool improves = improvement_follows();
  if (state.batches < num_first_batches) return false;
  if (improves && rule_.time_share() >= kShareOfPortfolio) {
    rule_.hit("time");
    return true;
  }
  if (is_adapted(problem_)) return true;
  if (state.batches == num_first_batches)
    return state.work >= kLargeWork && !options.gap && !options.time_limit_s;
  const int enough_rounds = problem_.topology->has_message_costs() ? kIdleRoundsOfMessages : kIdleRounds;
  const bool idle = state.idle_batches >= enough_rounds &&
                    (state.trials.size() >= kEnoughCandidates || state.work >= budget_ / 3);
  if (options.time_limit_s && !(improves && idle)) return false;
  if (!idle && state.work < budget_ * (options.gap && !improves ? 10 : 1)) return false;
  if (options.gap && !improves) rule_.hit("work");
  return true;
}

/// Rerouting that is more work than all other engines together finds nothing better where they are near the
/// bound.
bool Explorer::is_vain_rerouting(const std::vector<Candidate>& batch) const {
  return is_adapted(problem_) && runner_.engine_of(batch.front()).only_chunks > 0 &&
         best_finish_us() <= rule_.bound().us * (1 + kNearWithoutRerouting);
}

void Explorer::show_progress() const {
  if (!std::isfinite(best_finish_us())) return;
  const SearchState& state = now_.state;
  const Candidate& best = state.trials[state.best].candidate;
  context_.tell(fmt::format("{} candidates, best {:.6g} us by {} with {} chunks, gap {:.3f}%",
                            state.trials.size(), best_finish_us(), runner_.label(best), best.chunks,
                            100 * (best_finish_us() / rule_.bound().us - 1)));
}

/// Few candidates at a time keep few ranks at work.
int Explorer::rounds_in_batch() const {
  return static_cast<int>(
      std::clamp(problem_.options.streams / kLeastStreams, std::int64_t{1}, kMostRoundsInBatch));
}

std::vector<Candidate> Explorer::further_batch(std::size_t number) const {
  std::vector<Candidate> batch;
  for (int r = 1; r <= rounds_in_batch(); ++r) {
    const int round = static_cast<int>(number) * rounds_in_batch() + r;
    for (Candidate& candidate :
         next_batch(runner_.engines(), problem_.demand, problem_.options, now_.state.trials, round)) {
      const bool is_known = std::ranges::any_of(batch, [&](const Candidate& other) {
        return std::tie(other.engine, other.chunks, other.policy, other.seed) ==
               std::tie(candidate.engine, candidate.chunks, candidate.policy, candidate.seed);
      });
      if (!is_known) batch.push_back(std::move(candidate));
    }
  }
  return batch;
}

/// Collective. Once time is over before all numbers of chunks were tried: the engine and policy that are best
/// so far in those that are left, as far as they are soon done. Many chunks are often better, and local
/// search may not come so far.
void Explorer::try_in_more_chunks(const std::vector<std::vector<Candidate>>& first_ones) {
  const SearchState& state = now_.state;
  if (tried_more_chunks_ || !problem_.options.time_limit_s || rule_.time_share() < kShareOfPortfolio) return;
  tried_more_chunks_ = true;
  if (!improvement_follows() || context_.interrupted()) return;
  const Candidate best = state.trials[state.best].candidate;
  share_of_portfolio_ = kShareOfPortfolio + kShareOfMoreChunks;
  const double left_s = *problem_.options.time_limit_s * share_of_portfolio_ - context_.seconds();
  std::vector<Candidate> batch;
  for (std::size_t b = state.batches; b < first_ones.size(); ++b) {
    const auto same = std::ranges::find_if(first_ones[b], [&](const Candidate& candidate) {
      return candidate.engine == best.engine && candidate.policy == best.policy;
    });
    if (same != first_ones[b].end() && expected_seconds_.of(*same) <= kShareOfOneCount * left_s)
      batch.push_back(*same);
  }
  if (!batch.empty()) {
    run_batch(batch);
    --now_.state.batches;  // a search that is resumed goes on where this one was
    show_progress();
  }
  share_of_portfolio_ = kShareOfPortfolio;
}

/// Collective.
void Explorer::search() {
  const std::vector<EngineInfo>& engines = runner_.engines();
  const SolveOptions& options = problem_.options;
  Checkpoints& checkpoints = context_.checkpoints();
  // Local search may make more of a start in more chunks.
  const bool only_whole = std::ranges::none_of(engines, &EngineInfo::supports_local_search);
  bool is_kept = true;  // nothing is lost if this ends now
  for (;;) {
    const auto first_ones =
        first_batches(engines, problem_.demand, options, now_.state.trials, budget_, problem_.is_part);
    const std::size_t done = now_.state.batches;
    if (done > 0 && rule_.stop(best_finish_us())) return;
    if (to_beat_ && all_stay_behind(now_.state.trials, to_beat_->before_order_us)) return;
    if (only_whole && all_end_later_in_more(now_.state.trials)) return;
    if (done > 0 && done < first_ones.size()) try_in_more_chunks(first_ones);
    if (done > 0 && work_is_done(first_ones.size())) return;
    const bool varies = done >= first_ones.size();
    if (varies && to_beat_ && best_finish_us() > kReachOfSeeds * to_beat_->finish_us) return;
    const auto batch = varies ? further_batch(done - first_ones.size()) : first_ones[done];
    if (batch.empty() || (done + 1 == first_ones.size() && is_vain_rerouting(batch))) return;
    const SearchSnapshot before = now_;
    run_batch(batch);
    if (varies) {
      const bool better = best_finish_us() < before.state.best_finish_us();
      now_.state.idle_batches = better ? 0 : now_.state.idle_batches + rounds_in_batch();
    }
    show_progress();
    if (!context_.interrupted()) {
      is_kept = checkpoints.offer(context_.communicator, kSearchCheckpoint, [&] { return pack(now_); });
    } else if (!is_kept) {
      // Its last batch may not be what an undisturbed search would have found.
      checkpoints.keep(context_.communicator, kSearchCheckpoint, [&] { return pack(before); });
    }
  }
}

/// Collective. What pipelines, in twice as many chunks for as long as that gains enough, by whichever policy
/// is expected to end first: filling deep trees takes much of the finish time on large fabrics, where work
/// does not reach so many chunks. In the end by the other policies as well, of which few chunks tell little.
void Explorer::pipeline_in_more_chunks() {
  const std::vector<Trial>& trials = now_.state.trials;
  double before_us = kInfinity;
  while (best_finish_us() < before_us) {
    before_us = best_finish_us();
    Candidate candidate = trials[now_.state.best].candidate;
    candidate.chunks *= 2;
    const Expected first = first_in_more(candidate.engine, candidate.chunks, trials);
    candidate.policy = first.policy;
    if (first.finish_us > (1 - kWorthTwiceAsMany) * before_us || !try_pipelined(candidate)) break;
  }
  if (now_.state.best == kNoTrial) return;
  const Candidate best = trials[now_.state.best].candidate;
  for (const std::string& policy : untold_policies(runner_.engine_of(best), best, trials)) {
    Candidate candidate = best;
    candidate.policy = policy;
    try_pipelined(candidate);
  }
}

/// Collective. Whether there is enough time and memory for it, and need.
bool Explorer::try_pipelined(Candidate candidate) {
  const EngineInfo& engine = runner_.engine_of(candidate);
  if (rule_.stop(best_finish_us()) ||
      candidate.chunks > most_pipelined_chunks(engine, problem_.demand, problem_.options))
    return false;
  candidate.work = engine.work(problem_.demand.with_chunks(candidate.chunks), candidate.policy);
  const std::optional<double>& limit_s = problem_.options.time_limit_s;
  if (limit_s && expected_seconds_.of(candidate) > kShareOfOneCount * (*limit_s - context_.seconds()))
    return false;
  run_batch({candidate});
  --now_.state.batches;  // a search that is resumed goes on where this one was
  show_progress();
  return true;
}

Exploration Explorer::run() {
  resume_from_checkpoint();
  if (!std::isfinite(best_finish_us())) rule_.expect(last_resort(problem_).sends);
  search();
  if (!to_beat_ || !all_stay_behind(now_.state.trials, to_beat_->before_order_us)) pipeline_in_more_chunks();
  fall_back();
  return best_on_every_rank();
}

std::string left_out(const Error& fault) {
  return fmt::format("left out, a fault of Rondo: {}", fault.what());
}

Exploration explore(const Problem& problem, EngineRunner& runner, StopRule& rule, const RunContext& context,
                    bool deals, const std::optional<ToBeat>& to_beat) {
  return Explorer(problem, runner, rule, context, deals, to_beat).run();
}

}  // namespace rondo
