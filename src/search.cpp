#include "search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <tuple>

#include "improvement.hpp"
#include "portfolio.hpp"
#include "replayed.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/core/stopwatch.hpp"
#include "rondo/core/version.hpp"
#include "rondo/engines/engines.hpp"
#include "rondo/parallel/map_parts.hpp"
#include "rondo/parallel/messages.hpp"
#include "search_state.hpp"

namespace rondo {
namespace {

constexpr const char* kCheckpoint = "search";
constexpr const char* kImprovementCheckpoint = "improvement";
/// Of a time limit: what the portfolio may take of it where improvement follows, and when only splitting
/// chunks is left to do.
constexpr double kShareOfPortfolio = 0.4;
constexpr double kShareBeforeLastCall = 0.85;

/// What makes one trial better than another: among those that meet the gap the fewest chunks count first.
constexpr int kGapNotMet = std::numeric_limits<int>::max();
constexpr std::pair<int, double> kNoMerit{kGapNotMet, kInfinity};

std::size_t most_sends_on_a_link(const Schedule& schedule, const Topology& topology) {
  std::vector<std::size_t> count(topology.num_links(), 0);
  for (const Send& send : schedule.sends) ++count[send.link.index()];
  return *std::ranges::max_element(count);
}

/// What one rank keeps of the best candidate it has worked on.
struct Incumbent {
  std::size_t trial = kNoTrial;
  std::pair<int, double> merit = kNoMerit;
  std::shared_ptr<const EngineResult> result = nullptr;
};

/// Candidates are dealt over the ranks; only finish times travel, and at the end the winner.
class Search {
 public:
  Search(const Instance& instance, const SolveOptions& options, const Bounds& bounds, const Toolbox& tools,
         const Communicator& communicator, const Progress& progress, const std::atomic<bool>* interrupt,
         Checkpoints& checkpoints)
      : instance_(instance),
        options_(options),
        bound_(bounds.best()),
        communicator_(communicator),
        progress_(progress),
        interrupt_(interrupt),
        checkpoints_(checkpoints),
        tools_(tools) {
    engine_options_.seed = options.seed;
    engine_options_.epochs = options.epochs;
    engine_options_.limits.max_nodes = options.max_nodes;
    engine_options_.limits.interrupt = interrupt;
    engine_options_.policy_is_asked = !options.policy.empty();
    engine_options_.symmetry = options.symmetry;
    engine_options_.steady = bounds.steady;
    engine_options_.bound_us = bound_.us;
    engine_options_.stop_at_us = bound_.us * (1 + options.gap.value_or(0));
    engine_options_.translations = translations_of(instance, engine_options_);
    for (const EngineInfo& engine : engine_registry()) {
      const bool suits = options.engine == "auto" && engine.suits(instance, engine_options_);
      if (suits || options.engine == engine.name) engines_.push_back(engine);
    }
    prepared_.resize(engines_.size());
    if (tools.on_all_ranks) prepare_on_all_ranks();
  }

  void run();
  /// Collective: the best schedule, on every rank.
  SynthesisResult winner();

 private:
  /// What the ranks know together, and what this one has of it.
  struct Standing {
    SearchState state = {};
    int best_rank = 0;  ///< who has the best trial's result
    Incumbent mine = {};
  };
  void go_on_from_checkpoint();
  Bytes pack(const Standing& standing) const;
  void run_batch(const std::vector<Candidate>& batch);
  void prepare_on_all_ranks();
  Trial try_candidate(const Candidate& candidate, std::size_t trial);
  EngineResult run_engine(const Candidate& candidate);
  std::vector<ImprovementTask::Start> starts_of_improvement(const Schedule& best);
  int improve_winner(EngineResult& found);
  std::pair<int, double> merit(const Trial& trial) const {
    const bool met = options_.gap && trial.finish_us <= engine_options_.stop_at_us;
    return {met ? trial.candidate.chunks : kGapNotMet, trial.finish_us};
  }
  std::pair<int, double> best_merit() const {
    const SearchState& state = now_.state;
    return state.best < state.trials.size() ? merit(state.trials[state.best]) : kNoMerit;
  }
  bool interrupted() const;
  bool stop(double finish_us);
  bool work_is_done(std::size_t num_first_batches);
  void show_progress() const;
  double best_finish() const { return now_.state.best_finish_us(); }
  std::string label(const Candidate& c) const {
    return engines_[c.engine].name + (c.policy.empty() ? "" : "/" + c.policy) +
           (engines_[c.engine].policies.empty() ? "" : fmt::format("/{}", c.seed));
  }

  const Instance& instance_;
  const SolveOptions& options_;
  const LowerBound& bound_;
  const Communicator& communicator_;
  const Progress& progress_;
  const std::atomic<bool>* interrupt_;
  Checkpoints& checkpoints_;
  const Toolbox& tools_;
  const Stopwatch clock_;
  std::vector<EngineInfo> engines_;
  std::vector<PreparedEngine> prepared_;  ///< made when first needed
  EngineOptions engine_options_;
  Standing now_;
  std::size_t trials_of_checkpoint_ = 0;
  std::optional<double> whole_chunk_bound_us_;  ///< in the chunks asked for
  std::vector<std::string> limits_hit_;
  std::optional<Error> first_error_;
};

/// Before candidates are dealt: a rank that prepares an engine alone would wait for the others.
void Search::prepare_on_all_ranks() {
  EngineOptions options = engine_options_;
  if (options_.time_limit_s) options.limits.time_limit_s = *options_.time_limit_s;
  for (std::size_t e = 0; e < engines_.size(); ++e) {
    try {
      prepared_[e] = engines_[e].prepare(instance_, options, tools_);
    } catch (const Error& error) {
      // Each of its candidates fails with it, on whichever rank.
      prepared_[e] = [error](const Demand&, const EngineOptions&) -> EngineResult { throw error; };
    }
  }
}

void Search::go_on_from_checkpoint() {
  const std::optional<Bytes> bytes = checkpoints_.newest(communicator_, kCheckpoint);
  if (!bytes) return;
  PackedSearch packed = unpack_search(*bytes);
  now_ = {std::move(packed.state), 0, {}};
  now_.mine = {now_.state.best, best_merit(), packed.best};
  trials_of_checkpoint_ = now_.state.trials.size();
}

/// Collective.
Bytes Search::pack(const Standing& standing) const {
  Bytes best;
  if (standing.state.best != kNoTrial) {
    const bool have_it = communicator_.rank() == standing.best_rank;
    best =
        communicator_.broadcast(have_it ? pack_result(*standing.mine.result) : Bytes{}, standing.best_rank);
  }
  return pack_search(standing.state, best);
}

EngineResult Search::run_engine(const Candidate& candidate) {
  EngineOptions options = engine_options_;
  options.policy = candidate.policy;
  options.seed = candidate.seed;
  if (options_.time_limit_s)
    options.limits.time_limit_s = std::max(0.0, *options_.time_limit_s - clock_.seconds());
  PreparedEngine& engine = prepared_[candidate.engine];
  if (!engine) engine = engines_[candidate.engine].prepare(instance_, options, tools_);
  return engine(instance_.demand.with_chunks(candidate.chunks), options);
}

Trial Search::try_candidate(const Candidate& candidate, std::size_t trial) {
  if (interrupt_ && interrupt_->load()) return {candidate, kInfinity};  // its batch is not kept
  EngineResult result = run_engine(candidate);
  const Demand demand = instance_.demand.with_chunks(candidate.chunks);
  if (!result.schedule) return {candidate, kInfinity};

  const double finish = result.schedule->finish_us;
  Trial outcome{
      candidate, finish, result.schedule->sends.size(),
      most_sends_on_a_link(*result.schedule, *instance_.topology),
      !demand.is_pairwise() && (options_.engine == "auto" || engines_[candidate.engine].is_improved)};
  // Of equal ones the earlier trial counts, as in run_batch: a rank works on its parts in no fixed order.
  if (std::pair(merit(outcome), trial) < std::pair(now_.mine.merit, now_.mine.trial)) {
    const std::string whose = fmt::format("engine {} with {} chunks", label(candidate), candidate.chunks);
    const double replayed_us = replayed_finish_us(*instance_.topology, demand, result.schedule->sends, whose);
    if (!times_equal(replayed_us, finish)) {
      throw Error(ExitCode::internal,
                  fmt::format("{} says that it ends at {} us, the replay {} us; please report it", whose,
                              finish, replayed_us));
    }
    result.schedule->finish_us = replayed_us;
    now_.mine = {trial, merit(outcome), std::make_shared<const EngineResult>(std::move(result))};
  }
  return outcome;
}

void Search::run_batch(const std::vector<Candidate>& batch) {
  SearchState& state = now_.state;
  std::vector<double> work;
  for (const Candidate& candidate : batch) {
    work.push_back(candidate.work);
    state.work += candidate.work;
  }
  const std::size_t first = state.trials.size();
  const auto outcomes = map_parts(communicator_, work, [&](std::size_t part) {
    return to_message(try_candidate(batch[part], first + part));
  });
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const PartOutcome& outcome = outcomes[i];
    if (outcome.error) {
      if (outcome.error->code() == ExitCode::internal || options_.engine != "auto") throw *outcome.error;
      if (!first_error_) first_error_ = outcome.error;
    }
    Trial trial = outcome.error ? Trial{batch[i], kInfinity} : from_message<Trial>(outcome.value);
    if (merit(trial) < best_merit()) {
      state.best = state.trials.size();
      now_.best_rank = outcome.rank;
    }
    state.trials.push_back(std::move(trial));
  }
  ++state.batches;
}

/// Collective: signals reach some ranks earlier than others.
bool Search::interrupted() const {
  return communicator_.max(interrupt_ && interrupt_->load() ? 1 : 0) > 0;
}

/// Collective. Whether something other than work ends the search, with a schedule that ends at `finish_us`.
bool Search::stop(double finish_us) {
  // Clocks differ between ranks: all of them go by the largest.
  const bool cut_short = interrupted();
  const bool late = options_.time_limit_s && communicator_.max(clock_.seconds()) >= *options_.time_limit_s;
  if (cut_short) limits_hit_.push_back("interrupted");
  if (late) limits_hit_.push_back("time");
  const double met = options_.gap.value_or(1e-6);
  if (cut_short || late || finish_us <= bound_.us * (1 + met)) return true;
  if (options_.chunks == 0) return false;
  // What whole chunks leave no room for.
  if (!whole_chunk_bound_us_) {
    const Demand demand = instance_.demand.with_chunks(options_.chunks);
    whole_chunk_bound_us_ = whole_chunk_bound_of(*instance_.topology, demand, bound_.certificate);
  }
  return finish_us <= *whole_chunk_bound_us_ * (1 + 1e-6);
}

/// Whether there was enough of varying the best candidates.
bool Search::work_is_done(std::size_t num_first_batches) {
  const SearchState& state = now_.state;
  // Most of the time, and ten times the work, go to the improvement where there is one.
  const bool improves =
      options_.improve_work > 0 && state.best < state.trials.size() && state.trials[state.best].improvable;
  if (state.batches < num_first_batches) return false;
  if (improves && options_.time_limit_s &&
      communicator_.max(clock_.seconds()) >= kShareOfPortfolio * *options_.time_limit_s) {
    return true;
  }
  if (state.batches == num_first_batches)
    return state.work >= kLargeWork && !options_.gap && !options_.time_limit_s;
  const bool idle = state.idle_batches >= kIdleRounds &&
                    (state.trials.size() >= kEnoughCandidates || state.work >= kWorkBudget / 3);
  if (options_.time_limit_s && !(improves && idle)) return false;
  if (!idle && state.work < kWorkBudget * (options_.gap && !improves ? 10 : 1)) return false;
  if (options_.gap && !improves) limits_hit_.push_back("work");
  return true;
}

void Search::show_progress() const {
  if (!communicator_.is_root() || !std::isfinite(best_finish())) return;
  const SearchState& state = now_.state;
  const Candidate& best = state.trials[state.best].candidate;
  progress_(fmt::format("{} candidates, best {:.6g} us by {} with {} chunks, gap {:.3f}%",
                        state.trials.size(), best_finish(), label(best), best.chunks,
                        100 * (best_finish() / bound_.us - 1)));
}

void Search::run() {
  go_on_from_checkpoint();
  const auto first_ones = first_batches(engines_, instance_.demand, options_);
  bool is_kept = true;  // nothing is lost if this ends now
  while (now_.state.batches == 0 || !(stop(best_finish()) || work_is_done(first_ones.size()))) {
    const std::size_t done = now_.state.batches;
    const bool varies = done >= first_ones.size();
    const auto round = varies ? static_cast<int>(done - first_ones.size()) + 1 : 0;
    const auto batch = varies ? next_batch(engines_, instance_.demand, options_, now_.state.trials, round)
                              : first_ones[done];
    if (batch.empty()) return;
    const Standing before = now_;
    run_batch(batch);
    if (varies) {
      const bool better = best_finish() < before.state.best_finish_us();
      now_.state.idle_batches = better ? 0 : now_.state.idle_batches + 1;
    }
    show_progress();
    if (!interrupted()) {
      is_kept = checkpoints_.offer(communicator_, kCheckpoint, [&] { return pack(now_); });
    } else if (!is_kept) {
      // Its last batch may not be what an undisturbed search would have found.
      checkpoints_.keep(communicator_, kCheckpoint, [&] { return pack(before); });
    }
  }
}

/// The best schedules of the portfolio, one a number of chunks; made again where they are needed.
std::vector<ImprovementTask::Start> Search::starts_of_improvement(const Schedule& best) {
  std::vector<ImprovementTask::Start> starts;
  const std::vector<Trial>& trials = now_.state.trials;
  for (const std::size_t i : best_improvable(trials)) {
    starts.push_back({trials[i].candidate.chunks, trials[i].finish_us, [this, i, &best] {
                        return i == now_.state.best ? best
                                                    : *run_engine(now_.state.trials[i].candidate).schedule;
                      }});
  }
  return starts;
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
  task.last_call = [&] {
    return options_.time_limit_s &&
           communicator_.max(clock_.seconds()) >= kShareBeforeLastCall * *options_.time_limit_s;
  };
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
      checkpoints_.keep(communicator_, kCheckpoint, [&] { return pack(now_); });
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
  found.figures["improvement_tries"] = static_cast<double>(improvement.tries);
  found.figures["improvement_successes"] = static_cast<double>(improvement.successes);
  found.figures["finish_before_improvement_us"] = before_us;
  found.figures["chunks_before_improvement"] = trial.candidate.chunks;
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
  result.figures = std::move(found.figures);
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

}  // namespace

SynthesisResult search_best(const Instance& instance, const SolveOptions& options, const Bounds& bounds,
                            const Toolbox& tools, const Communicator& communicator, const Progress& progress,
                            const std::atomic<bool>* interrupt, Checkpoints& checkpoints) {
  Search search(instance, options, bounds, tools, communicator, progress, interrupt, checkpoints);
  search.run();
  return search.winner();
}

}  // namespace rondo
