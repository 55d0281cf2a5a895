#include "search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "replayed.hpp"
#include "rondo/core/certificate.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/engines/engines.hpp"
#include "rondo/parallel/map_parts.hpp"
#include "rondo/parallel/messages.hpp"
#include "search_loop.hpp"

namespace rondo {
namespace {

/// Of a time limit, what the portfolio may take where improvement follows.
constexpr double kShareOfPortfolio = 0.4;

}  // namespace

std::size_t most_sends_on_a_link(const Schedule& schedule, const Topology& topology) {
  std::vector<std::size_t> count(topology.num_links(), 0);
  for (const Send& send : schedule.sends) ++count[send.link.index()];
  return *std::ranges::max_element(count);
}

Search::Search(const Instance& instance, const SolveOptions& options, const Bounds& bounds,
               const Toolbox& tools, const Communicator& communicator, const Progress& progress,
               const std::atomic<bool>* interrupt, Checkpoints& checkpoints)
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
    const bool applicable = options.engine == "auto" && engine.applicable(instance, engine_options_);
    if (applicable || options.engine == engine.name) engines_.push_back(engine);
  }
  prepared_.resize(engines_.size());
  if (tools.on_all_ranks) prepare_on_all_ranks();
}

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

void Search::resume_from_checkpoint() {
  const std::optional<Bytes> bytes = checkpoints_.newest(communicator_, kSearchCheckpoint);
  if (!bytes) return;
  PackedSearch packed = unpack_search(*bytes);
  now_ = {std::move(packed.state), 0, {}};
  now_.mine = {now_.state.best, best_merit(), packed.best};
  trials_of_checkpoint_ = now_.state.trials.size();
}

/// Collective.
Bytes Search::pack(const SearchSnapshot& snapshot) const {
  Bytes best;
  if (snapshot.state.best != kNoTrial) {
    const bool have_it = communicator_.rank() == snapshot.best_rank;
    best =
        communicator_.broadcast(have_it ? pack_result(*snapshot.mine.result) : Bytes{}, snapshot.best_rank);
  }
  return pack_search(snapshot.state, best);
}

/// `until_s`: by the search's clock.
EngineResult Search::run_engine(const Candidate& candidate, std::optional<double> until_s) {
  EngineOptions options = engine_options_;
  if (until_s) options.limits.time_limit_s = std::max(0.0, *until_s - clock_.seconds());
  return run_engine(candidate, std::move(options));
}

EngineResult Search::run_engine(const Candidate& candidate, EngineOptions options) {
  options.policy = candidate.policy;
  options.seed = candidate.seed;
  PreparedEngine& engine = prepared_[candidate.engine];
  if (!engine) engine = engines_[candidate.engine].prepare(instance_, options, tools_);
  return engine(instance_.demand.with_chunks(candidate.chunks), options);
}

/// What a candidate has found before, whatever comes meanwhile.
Schedule Search::rerun(const Candidate& candidate) {
  EngineOptions options = engine_options_;
  options.limits.interrupt = nullptr;
  return std::move(*run_engine(candidate, std::move(options)).schedule);
}

bool Search::may_improve() const {
  return options_.improve_work > 0 && !instance_.demand.is_unicast();
}

/// When a candidate of the portfolio has to be done; nothing: it may take what it takes.
std::optional<double> Search::portfolio_ends_s(const Candidate& candidate) const {
  // List scheduling always ends, and there has to be some schedule.
  const bool is_first = !std::isfinite(best_finish()) && now_.mine.trial == kNoTrial;
  if (!options_.time_limit_s || (is_first && engines_[candidate.engine].supports_local_search))
    return std::nullopt;
  return *options_.time_limit_s * (may_improve() ? kShareOfPortfolio : 1);
}

Trial Search::try_candidate(const Candidate& candidate, std::size_t trial) {
  if (interrupt_ && interrupt_->load()) return {candidate, kInfinity};  // its batch is not kept
  EngineResult result = run_engine(candidate, portfolio_ends_s(candidate));
  const Demand demand = instance_.demand.with_chunks(candidate.chunks);
  if (!result.schedule) return {candidate, kInfinity};

  const double finish = result.schedule->finish_us;
  Trial outcome{candidate, finish, result.schedule->sends.size(),
                most_sends_on_a_link(*result.schedule, *instance_.topology),
                !demand.is_unicast() &&
                    (options_.engine == "auto" || engines_[candidate.engine].supports_local_search)};
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
  if (!whole_chunk_bound_us_) whole_chunk_bound_us_ = least_us(options_.chunks);
  return finish_us <= *whole_chunk_bound_us_ * (1 + 1e-6);
}

/// What whole chunks leave no room for.
double Search::least_us(int chunks) const {
  return whole_chunk_bound_of(*instance_.topology, instance_.demand.with_chunks(chunks), bound_.certificate);
}

/// Whether there was enough of varying the best candidates.
bool Search::work_is_done(std::size_t num_first_batches) {
  const SearchState& state = now_.state;
  // Most of the time, and ten times the work, go to the improvement where there is one.
  const bool improves =
      may_improve() && state.best < state.trials.size() && state.trials[state.best].improvable;
  if (state.batches < num_first_batches) return false;
  if (improves && options_.time_limit_s &&
      communicator_.max(clock_.seconds()) >= kShareOfPortfolio * *options_.time_limit_s) {
    limits_hit_.push_back("time");
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
  resume_from_checkpoint();
  bool is_kept = true;  // nothing is lost if this ends now
  for (;;) {
    const auto first_ones = first_batches(engines_, instance_.demand, options_, now_.state.trials);
    const std::size_t done = now_.state.batches;
    if (done > 0 && (stop(best_finish()) || work_is_done(first_ones.size()))) return;
    const bool varies = done >= first_ones.size();
    const auto round = varies ? static_cast<int>(done - first_ones.size()) + 1 : 0;
    const auto batch = varies ? next_batch(engines_, instance_.demand, options_, now_.state.trials, round)
                              : first_ones[done];
    if (batch.empty()) return;
    const SearchSnapshot before = now_;
    run_batch(batch);
    if (varies) {
      const bool better = best_finish() < before.state.best_finish_us();
      now_.state.idle_batches = better ? 0 : now_.state.idle_batches + 1;
    }
    show_progress();
    if (!interrupted()) {
      is_kept = checkpoints_.offer(communicator_, kSearchCheckpoint, [&] { return pack(now_); });
    } else if (!is_kept) {
      // Its last batch may not be what an undisturbed search would have found.
      checkpoints_.keep(communicator_, kSearchCheckpoint, [&] { return pack(before); });
    }
  }
}

SynthesisResult search_best(const Instance& instance, const SolveOptions& options, const Bounds& bounds,
                            const Toolbox& tools, const Communicator& communicator, const Progress& progress,
                            const std::atomic<bool>* interrupt, Checkpoints& checkpoints) {
  Search search(instance, options, bounds, tools, communicator, progress, interrupt, checkpoints);
  search.run();
  return search.winner();
}

}  // namespace rondo
