#include "explore.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "chunk_counts.hpp"
#include "expected_seconds.hpp"
#include "last_resort.hpp"
#include "more_chunks.hpp"
#include "replayed.hpp"
#include "rondo/core/error.hpp"
#include "rondo/parallel/map_parts.hpp"
#include "rondo/parallel/messages.hpp"
#include "step_rules.hpp"
#include "winner_share.hpp"

namespace rondo {
namespace {

/// What makes one trial better than another: among those that meet the gap the fewest chunks count first.
using Merit = std::pair<int, double>;
constexpr int kGapNotMet = std::numeric_limits<int>::max();
constexpr Merit kNoMerit{kGapNotMet, kInfinity};
/// Of the time limit; an engine that gives up later has met a limit.
constexpr double kTimeOfRefusals = 0.25;
/// Of the time that is left, what a candidate may take while there is no schedule.
constexpr double kShareOfFirst = 0.6;
/// A gap at which a kept schedule need not be rerouted where that is more work than all else.
constexpr double kNearWithoutRerouting = 5e-3;
/// What a last resort has where other engines have used up the time: a schedule a second late is of more use
/// than none.
constexpr double kSecondsOfLastResort = 1;
/// What list scheduling takes, in times of another last resort.
constexpr double kTimesOfList = 10;
/// Of the time limit: what the best candidate may take in more chunks than there was time to try, and of what
/// is left of that, the most that it is expected to take in one number of chunks.
constexpr double kShareOfMoreChunks = 0.1;
constexpr double kShareOfOneCount = 0.5;
/// How many times as late as what is to be beaten a schedule may end that other seeds still make earlier.
constexpr double kReachOfSeeds = 1.02;
/// Of a part that overlaps with another one, the gap up to which the schedule of a quick engine counts: it
/// keeps many links busy at once, and what leaves others room joins better.
constexpr double kNearInParts = 0.02;
/// Of what pipelines, the share of the finish time that twice as many chunks have to gain.
constexpr double kWorthTwiceAsMany = 2e-3;
/// Of variants of the best candidates, where there are streams for many ranks.
constexpr std::int64_t kMostRoundsInBatch = 6;

/// Local search plans transfers at the rates of their links alone.
bool has_rates(const Schedule& schedule) {
  return std::ranges::any_of(schedule.sends, &Send::has_rate);
}

/// What one rank keeps of the best candidate it has worked on.
struct BestOfRank {
  std::size_t trial = kNoTrial;
  Merit merit = kNoMerit;
  std::shared_ptr<EngineResult> result = nullptr;
};

/// What the ranks know together, and what this one has of it.
struct SearchSnapshot {
  SearchState state = {};
  int best_rank = 0;  ///< the rank that has the best trial's result
  BestOfRank mine = {};
};

class Explorer {
 public:
  Explorer(const Problem& problem, EngineRunner& runner, StopRule& rule, const RunContext& context,
           bool deals, const std::optional<ToBeat>& to_beat)
      : problem_(problem),
        runner_(runner),
        rule_(rule),
        context_(context),
        deals_(deals),
        to_beat_(to_beat),
        budget_(problem.list_share * kWorkBudget *
                (replanting_follows(problem) ? kShareBeforeReplanting : 1)) {}

  Exploration run();

 private:
  void resume_from_checkpoint();
  Bytes pack(const SearchSnapshot& snapshot) const;
  void run_batch(const std::vector<Candidate>& batch);
  Trial try_candidate(const Candidate& candidate, std::size_t trial);
  std::optional<double> ends_s(const Candidate& candidate) const;
  double expected_sends(const Candidate& candidate) const;
  bool may_be_split(const Candidate& candidate) const;
  bool ran_out_of_time(const Error& error);
  void fall_back();
  bool work_is_done(std::size_t num_first_batches);
  bool improvement_follows() const;
  int rounds_in_batch() const;
  std::vector<Candidate> further_batch(std::size_t number) const;
  void try_in_more_chunks(const std::vector<std::vector<Candidate>>& first_ones);
  void pipeline_in_more_chunks();
  bool is_vain_rerouting(const std::vector<Candidate>& batch) const;
  void show_progress() const;
  void search();
  bool is_dealt(int chunks) const { return deals_ && may_be_dealt(problem_, chunks); }
  EngineResult take_best(const Trial& winner, std::optional<DealtSchedule>& is_dealt_as);
  Exploration best_on_every_rank();

  Merit merit(const Trial& trial) const {
    const bool met = problem_.options.has_gap_to_meet() && trial.finish_us <= rule_.enough_us();
    return {met ? trial.candidate.chunks : kGapNotMet, trial.finish_us};
  }
  Merit best_merit() const {
    const SearchState& state = now_.state;
    return state.best < state.trials.size() ? merit(state.trials[state.best]) : kNoMerit;
  }
  double best_finish_us() const { return now_.state.best_finish_us(); }

  const Problem& problem_;
  EngineRunner& runner_;
  StopRule& rule_;
  const RunContext& context_;
  const bool deals_;
  const std::optional<ToBeat> to_beat_;
  const double budget_;  ///< work of all candidates where no limit is asked for
  SearchSnapshot now_;
  ExpectedSeconds expected_seconds_;
  std::size_t trials_of_checkpoint_ = 0;
  std::optional<Error> first_error_;
  std::optional<Error> first_fault_;  ///< of Rondo, by an engine of `auto`: the others go on
  bool falls_back_ = false;           ///< no engine was in time
  bool tried_more_chunks_ = false;
  double share_of_portfolio_ = kShareOfPortfolio;  ///< of a time limit, where an improvement follows
};

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

/// Collective. What pipelines, in twice as many chunks for as long as that gains enough: filling deep trees
/// takes much of the finish time on large fabrics, where work does not reach so many chunks.
void Explorer::pipeline_in_more_chunks() {
  const std::vector<Trial>& trials = now_.state.trials;
  double before_us = kInfinity;
  while (best_finish_us() < before_us && !rule_.stop(best_finish_us())) {
    before_us = best_finish_us();
    Candidate candidate = trials[now_.state.best].candidate;
    const EngineInfo& engine = runner_.engine_of(candidate);
    const double gain_us = gain_of_twice_as_many_us(trials, candidate);
    candidate.chunks *= 2;
    if (candidate.chunks > most_pipelined_chunks(engine, problem_.demand, problem_.options) ||
        gain_us < kWorthTwiceAsMany * before_us)
      return;
    candidate.work = engine.work(problem_.demand.with_chunks(candidate.chunks), candidate.policy);
    const std::optional<double>& limit_s = problem_.options.time_limit_s;
    if (limit_s && expected_seconds_.of(candidate) > kShareOfOneCount * (*limit_s - context_.seconds()))
      return;
    run_batch({candidate});
    --now_.state.batches;  // a search that is resumed goes on where this one was
    show_progress();
  }
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

Exploration Explorer::run() {
  resume_from_checkpoint();
  if (!std::isfinite(best_finish_us())) rule_.expect(last_resort(problem_).sends);
  search();
  if (!to_beat_ || !all_stay_behind(now_.state.trials, to_beat_->before_order_us)) pipeline_in_more_chunks();
  fall_back();
  return best_on_every_rank();
}

}  // namespace

std::string left_out(const Error& fault) {
  return fmt::format("left out, a fault of Rondo: {}", fault.what());
}

Exploration explore(const Problem& problem, EngineRunner& runner, StopRule& rule, const RunContext& context,
                    bool deals, const std::optional<ToBeat>& to_beat) {
  return Explorer(problem, runner, rule, context, deals, to_beat).run();
}

}  // namespace rondo
