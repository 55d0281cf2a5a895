#include "rondo/pipeline/synthesize.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "portfolio.hpp"
#include "replayed.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/core/stopwatch.hpp"
#include "rondo/core/version.hpp"
#include "rondo/engines/bounds.hpp"
#include "rondo/parallel/map_parts.hpp"
#include "rondo/parallel/messages.hpp"
#include "rondo/pipeline/registry.hpp"
#include "synthesize_rounds.hpp"

namespace rondo {
namespace {

/// What one rank keeps of the best candidate it has worked on.
struct Incumbent {
  std::size_t trial = std::numeric_limits<std::size_t>::max();
  double finish_us = std::numeric_limits<double>::infinity();
  EngineResult result = {};
};

Bytes pack(const EngineResult& result) {
  MessageWriter message;
  message.put(result.schedule->finish_us);
  message.put_all(result.schedule->sends);
  message.put(result.figures.size());
  for (const auto& [name, value] : result.figures) {
    message.put_all(name);
    message.put(value);
  }
  for (const auto& texts : {result.remarks, result.limits_hit}) {
    message.put(texts.size());
    for (const std::string& text : texts) message.put_all(text);
  }
  return message.take();
}

EngineResult unpack(const Bytes& bytes) {
  MessageReader message(bytes);
  EngineResult result;
  result.schedule.emplace();
  result.schedule->finish_us = message.get<double>();
  result.schedule->sends = message.get_all<std::vector<Send>>();
  for (auto n = message.get<std::size_t>(); n > 0; --n) {
    const auto name = message.get_all<std::string>();
    result.figures[name] = message.get<double>();
  }
  for (auto* texts : {&result.remarks, &result.limits_hit}) {
    for (auto n = message.get<std::size_t>(); n > 0; --n) texts->push_back(message.get_all<std::string>());
  }
  return result;
}

/// Candidates are dealt over the ranks; only finish times travel, and at the end the winner.
class Search {
 public:
  Search(const Instance& instance, const SolveOptions& options, const Bounds& bounds, const Toolbox& tools,
         const Communicator& communicator, const Progress& progress, const std::atomic<bool>* interrupt)
      : instance_(instance),
        options_(options),
        bound_(bounds.best()),
        communicator_(communicator),
        progress_(progress),
        interrupt_(interrupt),
        tools_(tools) {
    for (const EngineInfo& engine : engine_registry()) {
      const bool asked = options.engine == engine.name;
      if (asked || (options.engine == "auto" && engine.suits(instance))) engines_.push_back(engine);
    }
    prepared_.resize(engines_.size());
    engine_options_.seed = options.seed;
    engine_options_.epochs = options.epochs;
    engine_options_.limits.max_nodes = options.max_nodes;
    engine_options_.limits.interrupt = interrupt;
    engine_options_.policy_is_asked = !options.policy.empty();
    engine_options_.symmetry = options.symmetry;
    engine_options_.steady = bounds.steady;
    engine_options_.bound_us = bound_.us;
    engine_options_.stop_at_us = bound_.us * (1 + options.gap.value_or(0));
    if (tools.on_all_ranks) prepare_on_all_ranks();
  }

  void run();
  /// Collective: the best schedule, on every rank.
  SynthesisResult winner();

 private:
  void run_batch(const std::vector<Candidate>& batch);
  void prepare_on_all_ranks();
  double try_candidate(const Candidate& candidate, std::size_t trial);
  bool stop();
  double best_finish() const { return best_ < trials_.size() ? trials_[best_].finish_us : kInfinity; }
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
  const Toolbox& tools_;
  const Stopwatch clock_;
  std::vector<EngineInfo> engines_;
  std::vector<PreparedEngine> prepared_;  ///< made when first needed
  EngineOptions engine_options_;
  std::vector<Trial> trials_;
  std::size_t best_ = std::numeric_limits<std::size_t>::max();
  int best_rank_ = 0;
  Incumbent mine_;
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

double Search::try_candidate(const Candidate& candidate, std::size_t trial) {
  EngineOptions options = engine_options_;
  options.policy = candidate.policy;
  options.seed = candidate.seed;
  if (options_.time_limit_s)
    options.limits.time_limit_s = std::max(0.0, *options_.time_limit_s - clock_.seconds());
  PreparedEngine& engine = prepared_[candidate.engine];
  if (!engine) engine = engines_[candidate.engine].prepare(instance_, options, tools_);
  const Demand demand = instance_.demand.with_chunks(candidate.chunks);
  EngineResult result = engine(demand, options);
  if (!result.schedule) return kInfinity;

  const double finish = result.schedule->finish_us;
  // Of equal finishes the earlier trial counts, as in run_batch: a rank works on its parts in no fixed order.
  if (std::tie(finish, trial) < std::tie(mine_.finish_us, mine_.trial)) {
    const std::string whose = fmt::format("engine {} with {} chunks", label(candidate), candidate.chunks);
    const double replayed_us = replayed_finish_us(*instance_.topology, demand, result.schedule->sends, whose);
    if (!times_equal(replayed_us, finish)) {
      throw Error(ExitCode::internal,
                  fmt::format("{} says that it ends at {} us, the replay {} us; please report it", whose,
                              finish, replayed_us));
    }
    mine_ = {trial, finish, std::move(result)};
  }
  return finish;
}

void Search::run_batch(const std::vector<Candidate>& batch) {
  std::vector<double> work;
  for (const Candidate& candidate : batch) work.push_back(candidate.work);
  const std::size_t first = trials_.size();
  const auto outcomes = map_parts(communicator_, work, [&](std::size_t part) {
    const double finish = try_candidate(batch[part], first + part);
    MessageWriter message;
    message.put(finish);
    return message.take();
  });
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const PartOutcome& outcome = outcomes[i];
    if (outcome.error) {
      if (outcome.error->code() == ExitCode::internal || options_.engine != "auto") throw *outcome.error;
      if (!first_error_) first_error_ = outcome.error;
    }
    const double finish = outcome.error ? kInfinity : MessageReader(outcome.value).get<double>();
    if (finish < best_finish()) {
      best_ = trials_.size();
      best_rank_ = outcome.rank;
    }
    trials_.push_back({batch[i], finish});
  }
}

bool Search::stop() {
  // Clocks and signals differ between ranks: all of them go by the largest.
  const bool interrupted = communicator_.max(interrupt_ && interrupt_->load() ? 1 : 0) > 0;
  const bool late = options_.time_limit_s && communicator_.max(clock_.seconds()) >= *options_.time_limit_s;
  if (interrupted) limits_hit_.push_back("interrupted");
  if (late) limits_hit_.push_back("time");
  const double met = options_.gap.value_or(1e-6);
  return interrupted || late || best_finish() <= bound_.us * (1 + met);
}

void Search::run() {
  const Demand& demand = instance_.demand;
  double spent = 0;
  auto try_batch = [&](const std::vector<Candidate>& batch) {
    run_batch(batch);
    for (const Candidate& c : batch) spent += c.work;
    if (communicator_.is_root() && std::isfinite(best_finish())) {
      progress_(fmt::format("{} candidates, best {:.6g} us by {} with {} chunks, gap {:.3f}%", trials_.size(),
                            best_finish(), label(trials_[best_].candidate), trials_[best_].candidate.chunks,
                            100 * (best_finish() / bound_.us - 1)));
    }
    return stop();
  };
  for (const auto& batch : first_batches(engines_, demand, options_)) {
    if (try_batch(batch)) return;
  }
  int idle_rounds = 0;
  for (int round = 1;; ++round) {
    const std::vector<Candidate> batch = next_batch(engines_, demand, options_, trials_, round);
    if (batch.empty()) return;
    const double before_us = best_finish();
    if (try_batch(batch)) return;
    idle_rounds = best_finish() < before_us ? 0 : idle_rounds + 1;
    const bool idle =
        idle_rounds >= kIdleRounds && (trials_.size() >= kEnoughCandidates || spent >= kWorkBudget / 3);
    if (!options_.time_limit_s && (idle || spent >= kWorkBudget * (options_.gap ? 10 : 1))) {
      if (options_.gap) limits_hit_.push_back("work");
      return;
    }
  }
}

SynthesisResult Search::winner() {
  if (!std::isfinite(best_finish())) {
    if (first_error_) throw *first_error_;
    throw Error(
        ExitCode::unavailable,
        fmt::format("engine {} found no schedule before {} ended it; raise the limit or use --engine list",
                    options_.engine, limits_hit_.empty() ? "a limit" : limits_hit_.front()));
  }
  const Candidate& candidate = trials_[best_].candidate;
  EngineResult found = unpack(
      communicator_.broadcast(communicator_.rank() == best_rank_ ? pack(mine_.result) : Bytes{}, best_rank_));
  SynthesisResult result{{*instance_.topology, instance_.demand.with_chunks(candidate.chunks),
                          std::move(*found.schedule), bound_, producer()}};
  result.gap = best_finish() / bound_.us - 1;
  result.engine = label(candidate);
  result.seed = candidate.seed;
  result.figures = std::move(found.figures);
  result.remarks = std::move(found.remarks);
  limits_hit_.insert(limits_hit_.end(), found.limits_hit.begin(), found.limits_hit.end());
  result.limits_hit = limits_hit_;
  for (std::size_t e = 0; e < engines_.size(); ++e) {
    const Trial* best = nullptr;
    for (const Trial& trial : trials_) {
      if (trial.candidate.engine == e && std::isfinite(trial.finish_us) &&
          (!best || trial.finish_us < best->finish_us)) {
        best = &trial;
      }
    }
    if (best) result.candidates.push_back({label(best->candidate), best->candidate.chunks, best->finish_us});
  }
  for (const Trial& trial : trials_) {
    const auto entry = result.finish_us_by_chunks.try_emplace(trial.candidate.chunks, trial.finish_us).first;
    entry->second = std::min(entry->second, trial.finish_us);
  }
  return result;
}

}  // namespace

SynthesisResult synthesize(std::shared_ptr<const Topology> topology, const Demand& demand,
                           const SolveOptions& options, const Communicator& communicator,
                           const Progress& progress, const std::atomic<bool>* interrupt,
                           const RoundStore& store) {
  if (options.engine != "auto") find_engine(options.engine);
  check_reachable(*topology, demand);
  if (options.engine == "rounds") {
    return synthesize_rounds(std::move(topology), demand, options, communicator, progress, interrupt, store);
  }
  const Instance instance{std::move(topology), demand};

  const Stopwatch bounds_clock;
  const Toolbox tools = prepare_toolbox(options, communicator, progress, interrupt);
  const Bounds bounds = lower_bounds(instance, tools, options.symmetry);
  const LowerBound& bound = bounds.best();
  const double bounds_s = bounds_clock.seconds();
  if (communicator.is_root()) {
    progress(fmt::format("lower bound {:.6g} us ({})", bound.us, certificate_kind(bound.certificate)));
  }

  const Stopwatch search_clock;
  Search search(instance, options, bounds, tools, communicator, progress, interrupt);
  search.run();
  SynthesisResult result = search.winner();
  const double search_s = search_clock.seconds();

  const Stopwatch replay_clock;
  const double finish_us = replayed_finish_us(result.proven.topology, result.proven.demand,
                                              result.proven.schedule.sends, "the winner");
  result.proven.schedule.finish_us = finish_us;
  result.gap = finish_us / bound.us - 1;
  result.remarks.insert(result.remarks.end(), bounds.remarks.begin(), bounds.remarks.end());
  result.wall_parts_s = {{"bounds", bounds_s}, {"search", search_s}, {"replay", replay_clock.seconds()}};
  return result;
}

}  // namespace rondo
