#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "chunk_counts.hpp"
#include "explorer.hpp"
#include "replayed.hpp"
#include "rondo/core/error.hpp"
#include "rondo/parallel/map_parts.hpp"
#include "rondo/parallel/messages.hpp"
#include "step_rules.hpp"
#include "winner_share.hpp"

/// What becomes of a batch of candidates, and of the best one of all.
namespace rondo {
namespace {

/// Of the time that is left, what a candidate may take while there is no schedule.
constexpr double kShareOfFirst = 0.6;
/// What a last resort has where other engines have used up the time: a schedule a second late is of more use
/// than none.
constexpr double kSecondsOfLastResort = 1;
/// Of a part that overlaps with another one, the gap up to which the schedule of a quick engine counts: it
/// keeps many links busy at once, and what leaves others room joins better.
constexpr double kNearInParts = 0.02;

/// Local search plans transfers at the rates of their links alone.
bool has_rates(const Schedule& schedule) {
  return std::ranges::any_of(schedule.sends, &Send::has_rate);
}

}  // namespace

void Explorer::resume_from_checkpoint() {
  const std::optional<Bytes> bytes = context_.checkpoints().newest(context_.communicator, kSearchCheckpoint);
  if (!bytes) return;
  PackedSearch packed = unpack_search(*bytes);
  now_ = {std::move(packed.state), 0, {}};
  now_.mine = {now_.state.best, best_merit(), packed.best};
  trials_of_checkpoint_ = now_.state.trials.size();
}

/// Collective.
Bytes Explorer::pack(const SearchSnapshot& snapshot) const {
  Bytes best;
  if (snapshot.state.best != kNoTrial) {
    const bool have_it = context_.communicator.rank() == snapshot.best_rank;
    best = context_.communicator.broadcast(have_it ? pack_result(*snapshot.mine.result) : Bytes{},
                                           snapshot.best_rank);
  }
  return pack_search(snapshot.state, best);
}

/// By the run's clock, when a candidate has to be done; nothing without a time limit.
std::optional<double> Explorer::ends_s(const Candidate& candidate) const {
  const std::optional<double>& limit_s = problem_.options.time_limit_s;
  if (!limit_s) return std::nullopt;
  const double now_s = context_.clock.seconds();
  const bool is_first = !std::isfinite(best_finish_us()) && now_.mine.trial == kNoTrial;
  if (falls_back_) {
    return is_first ? std::max(*limit_s, now_s + kSecondsOfLastResort)
                    : *limit_s - kClosingSecondsPerSend * expected_sends(candidate);
  }
  if (is_first && runner_.engines().size() == 1 && runner_.engine_of(candidate).supports_local_search)
    return *limit_s;
  const double ends_s = *limit_s * (may_improve(problem_) || may_join(problem_) ? share_of_portfolio_ : 1) -
                        kClosingSecondsPerSend * expected_sends(candidate);
  // While there is no schedule, something is left for other engines and for list scheduling.
  return is_first ? now_s + kShareOfFirst * std::max(0.0, ends_s - now_s) : ends_s;
}

/// As many for each chunk as the best schedule has; 0 where there is none.
double Explorer::expected_sends(const Candidate& candidate) const {
  const SearchState& state = now_.state;
  if (state.best >= state.trials.size()) return 0;
  const Trial& best = state.trials[state.best];
  return static_cast<double>(best.sends) * candidate.chunks / best.candidate.chunks;
}

/// Whether local search could do something with a schedule of the engine: what pipelines has more chunks by
/// itself than local search splits into, and restarts need an engine that is improved. In numbers of chunks
/// that an engine found its transfers fit the latencies, and twice as many are no better.
bool Explorer::may_be_split(const Candidate& candidate) const {
  const EngineInfo& engine = runner_.engine_of(candidate);
  if (std::ranges::binary_search(engine.found_counts, candidate.chunks)) return false;
  return !engine.most_sends ||
         (candidate.chunks <= most_chunks_of_improvement(problem_.demand, problem_.options) &&
          std::ranges::any_of(runner_.engines(), &EngineInfo::supports_local_search));
}

Trial Explorer::try_candidate(const Candidate& candidate, std::size_t trial) {
  if (context_.interrupt_came()) return {candidate, kInfinity};  // its batch is not kept
  const std::optional<double> ends = ends_s(candidate);
  if (ends && context_.clock.seconds() >= *ends) return {candidate, kInfinity};
  EngineResult result = runner_.run(candidate, ends, is_dealt(candidate.chunks));
  const Demand demand = problem_.demand.with_chunks(candidate.chunks);
  if (!result.schedule && !result.folded) return {candidate, kInfinity};

  const bool is_plain = result.folded || !has_rates(*result.schedule);
  const double finish = result.folded ? result.folded->finish_us() : result.schedule->finish_us;
  const Topology& topology = *problem_.topology;
  const bool others_are_tried = runner_.engines().size() > 1;
  if (problem_.is_part && others_are_tried && runner_.engine_of(candidate).is_quick &&
      finish > (1 + kNearInParts) * rule_.bound().us)
    return {candidate, kInfinity};
  Trial outcome{
      candidate, finish, result.folded ? result.folded->num_sends() : result.schedule->sends.size(),
      result.folded ? result.folded->most_sends_on_a_link()
                    : most_sends_on_a_link(*result.schedule, topology),
      local_search_applies(problem_) && is_plain && may_be_split(candidate) &&
          (runner_.engine_of(candidate).supports_local_search || problem_.options.engine == "auto")};
  // Of equal ones the earlier trial counts, as in run_batch, in whatever order a rank works on its parts.
  if (std::pair(merit(outcome), trial) < std::pair(now_.mine.merit, now_.mine.trial)) {
    if (!is_dealt(candidate.chunks)) {
      const std::string whose =
          fmt::format("engine {} with {} chunks", runner_.label(candidate), candidate.chunks);
      result.schedule->finish_us = checked_finish_us(
          finish, replayed_finish_us(topology, demand, result.schedule->sends, whose), whose);
    }
    now_.mine = {trial, merit(outcome), std::make_shared<EngineResult>(std::move(result))};
  }
  return outcome;
}

/// Collective.
void Explorer::run_batch(const std::vector<Candidate>& batch) {
  SearchState& state = now_.state;
  std::vector<double> seconds;
  for (const Candidate& candidate : batch) {
    seconds.push_back(expected_seconds_.of(candidate));
    state.work += candidate.work;
  }
  const std::size_t first = state.trials.size();
  const auto outcomes = map_parts(
      context_.communicator, seconds,
      [&](std::size_t part) { return to_message(try_candidate(batch[part], first + part)); },
      runner_.kin_of(batch));
  // An engine asked for by name may do fewer chunks than this, or have policies for other fabrics.
  const bool is_all = problem_.options.engine != "auto" && !std::isfinite(best_finish_us()) &&
                      std::ranges::all_of(outcomes, [](const PartOutcome& o) { return o.error.has_value(); });
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const PartOutcome& outcome = outcomes[i];
    expected_seconds_.learn(batch[i], outcome.seconds);
    if (outcome.error) {
      const bool is_fault = outcome.error->code() == ExitCode::internal;
      const bool others_are_tried = problem_.options.engine == "auto";
      if ((is_fault && !others_are_tried) || (is_all && !ran_out_of_time(*outcome.error)))
        throw *outcome.error;
      std::optional<Error>& kept = is_fault ? first_fault_ : first_error_;
      if (!kept) kept = outcome.error;
    }
    Trial trial = outcome.error ? Trial{batch[i], kInfinity} : from_message<Trial>(outcome.value);
    if (merit(trial) < best_merit()) {
      state.best = state.trials.size();
      now_.best_rank = outcome.rank;
    }
    state.trials.push_back(std::move(trial));
  }
  if (state.best < state.trials.size()) rule_.expect(static_cast<double>(state.trials[state.best].sends));
  ++state.batches;
}

/// Collective. What a rank has of its own goes first: schedules of thousands of GPUs fill gigabytes.
EngineResult Explorer::take_best(const Trial& winner, std::optional<DealtSchedule>& is_dealt_as) {
  const Communicator& communicator = context_.communicator;
  const bool have_it = communicator.rank() == now_.best_rank;
  std::shared_ptr<EngineResult> mine = std::move(now_.mine.result);
  if (!have_it) mine = nullptr;
  std::optional<Schedule> share;
  if (is_dealt(winner.candidate.chunks))
    share = share_of({winner.candidate, now_.best_rank}, mine.get(), problem_, runner_, context_);
  EngineResult found;
  if (communicator.size() == 1) {
    found = std::move(*mine);
  } else {
    Bytes packed = have_it ? pack_result(*mine) : Bytes{};
    mine = nullptr;
    found = unpack_result(communicator.broadcast(std::move(packed), now_.best_rank));
  }
  if (!share) return found;
  found.folded = nullptr;
  found.schedule = std::move(share);
  is_dealt_as = {winner.sends, winner.most_sends_on_a_link};
  return found;
}

/// Collective.
Exploration Explorer::best_on_every_rank() {
  const SearchState& state = now_.state;
  if (!std::isfinite(best_finish_us())) {
    if (first_fault_) throw *first_fault_;
    if (first_error_) throw *first_error_;
    const auto& limits = rule_.limits_hit();
    throw Error(
        ExitCode::unavailable,
        fmt::format("engine {} found no schedule before {} ended it; raise the limit or use --engine list",
                    problem_.options.engine, limits.empty() ? "a limit" : limits.front()));
  }
  const Trial& trial = state.trials[state.best];
  const Candidate& winner = trial.candidate;
  std::optional<DealtSchedule> is_dealt_as;
  EngineResult found = take_best(trial, is_dealt_as);
  if (first_fault_) found.remarks.push_back(left_out(*first_fault_));
  Incumbent best{winner.chunks,
                 std::move(found),
                 runner_.label(winner),
                 winner.seed,
                 !is_dealt(winner.chunks) && state.best >= trials_of_checkpoint_,
                 is_dealt_as};
  std::vector<SynthesisResult::Candidate> candidates;
  for (const Trial& each : best_by_engine(state.trials)) {
    const Candidate& candidate = each.candidate;
    candidates.push_back({runner_.label(candidate), candidate.chunks, each.finish_us});
  }
  return {std::move(now_.state), std::move(best), std::move(candidates)};
}

}  // namespace rondo
