#include "rondo/pipeline/synthesize.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <tuple>

#include "portfolio.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/core/version.hpp"
#include "rondo/engines/bounds.hpp"
#include "rondo/parallel/map_parts.hpp"
#include "rondo/pipeline/registry.hpp"
#include "synthesize_rounds.hpp"

namespace rondo {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// What one rank keeps of the best candidate it has worked on.
struct Incumbent {
  std::size_t trial = std::numeric_limits<std::size_t>::max();
  double finish_us = std::numeric_limits<double>::infinity();
  EngineResult result = {};
};

template <class T>
Bytes bytes_of(const T* values, std::size_t count) {
  static_assert(std::is_trivially_copyable_v<T>);
  Bytes bytes(count * sizeof(T));
  if (count > 0) std::memcpy(bytes.data(), values, bytes.size());
  return bytes;
}

template <class T>
std::vector<T> values_of(const Bytes& bytes) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

/// Candidates are dealt over the ranks; only finish times travel, and at the end the winner.
class Search {
 public:
  Search(const Instance& instance, const SolveOptions& options, const LowerBound& bound, const Toolbox& tools,
         const Communicator& communicator, const Progress& progress, const std::atomic<bool>* interrupt)
      : instance_(instance),
        options_(options),
        bound_(bound),
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
    engine_options_.stop_at_us = bound.us * (1 + options.gap.value_or(0));
  }

  void run();
  /// Collective: the best schedule, on every rank.
  SynthesisResult winner();

 private:
  void run_batch(const std::vector<Candidate>& batch);
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
  const Clock::time_point start_ = Clock::now();
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

double Search::try_candidate(const Candidate& candidate, std::size_t trial) {
  EngineOptions options = engine_options_;
  options.policy = candidate.policy;
  options.seed = candidate.seed;
  if (options_.time_limit_s)
    options.limits.time_limit_s = std::max(0.0, *options_.time_limit_s - seconds_since(start_));
  PreparedEngine& engine = prepared_[candidate.engine];
  if (!engine) engine = engines_[candidate.engine].prepare(instance_, options, tools_);
  const Demand demand = instance_.demand.with_chunks(candidate.chunks);
  EngineResult result = engine(demand, options);
  if (!result.schedule) return kInfinity;

  const double finish = result.schedule->finish_us;
  // Of equal finishes the earlier trial counts, as in run_batch: a rank works on its parts in no fixed order.
  if (std::tie(finish, trial) < std::tie(mine_.finish_us, mine_.trial)) {
    const ReplayResult replayed = replay(*instance_.topology, demand, result.schedule->sends);
    if (!replayed.valid() || !times_equal(replayed.finish_us, finish)) {
      throw Error(
          ExitCode::internal,
          fmt::format(
              "engine {} with {} chunks made a schedule that the replay refuses: {}; please report it",
              label(candidate), candidate.chunks, replayed.violation.value_or("its finish time is wrong")));
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
    return bytes_of(&finish, 1);
  });
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const PartOutcome& outcome = outcomes[i];
    if (outcome.error) {
      if (outcome.error->code() == ExitCode::internal || options_.engine != "auto") throw *outcome.error;
      if (!first_error_) first_error_ = outcome.error;
    }
    const double finish = outcome.error ? kInfinity : values_of<double>(outcome.value).front();
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
  const bool late =
      options_.time_limit_s && communicator_.max(seconds_since(start_)) >= *options_.time_limit_s;
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
  const bool owner = communicator_.rank() == best_rank_;
  auto share = [&](const Bytes& bytes) { return communicator_.broadcast(bytes, best_rank_); };

  const std::vector<Send>& sends = owner ? mine_.result.schedule->sends : std::vector<Send>{};
  Schedule schedule{values_of<Send>(share(bytes_of(sends.data(), sends.size()))), best_finish()};
  SynthesisResult result{{*instance_.topology, instance_.demand.with_chunks(candidate.chunks),
                          std::move(schedule), bound_, producer()}};
  result.gap = best_finish() / bound_.us - 1;
  result.engine = label(candidate);
  result.seed = candidate.seed;
  std::string notes;  // name<TAB>value lines of figures, then remarks and limits: few and short
  for (const auto& [name, value] : mine_.result.figures) notes += fmt::format("f{}\t{:a}\n", name, value);
  for (const std::string& remark : mine_.result.remarks) notes += "r" + remark + "\n";
  for (const std::string& limit : mine_.result.limits_hit) notes += "l" + limit + "\n";
  notes = to_text(share(to_bytes(notes)));
  for (std::size_t at = 0; at < notes.size();) {
    const std::size_t end = notes.find('\n', at);
    const std::string line = notes.substr(at + 1, end - at - 1);
    const std::size_t tab = line.find('\t');
    if (notes[at] == 'f') result.figures[line.substr(0, tab)] = std::strtod(line.c_str() + tab + 1, nullptr);
    if (notes[at] == 'r') result.remarks.push_back(line);
    if (notes[at] == 'l') limits_hit_.push_back(line);
    at = end + 1;
  }
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

  const auto bounds_start = Clock::now();
  const Toolbox tools = make_toolbox();
  const Bounds bounds = lower_bounds(instance, tools);
  const LowerBound& bound = bounds.best();
  const double bounds_s = seconds_since(bounds_start);
  if (communicator.is_root()) {
    progress(fmt::format("lower bound {:.6g} us ({})", bound.us, certificate_kind(bound.certificate)));
  }

  const auto search_start = Clock::now();
  Search search(instance, options, bound, tools, communicator, progress, interrupt);
  search.run();
  SynthesisResult result = search.winner();
  const double search_s = seconds_since(search_start);

  const auto replay_start = Clock::now();
  const ReplayResult replayed =
      replay(result.proven.topology, result.proven.demand, result.proven.schedule.sends);
  if (!replayed.valid())
    throw Error(ExitCode::internal, "the winner does not replay: " + *replayed.violation);
  result.proven.schedule.finish_us = replayed.finish_us;
  result.gap = replayed.finish_us / bound.us - 1;
  result.remarks.insert(result.remarks.end(), bounds.remarks.begin(), bounds.remarks.end());
  result.wall_parts_s = {{"bounds", bounds_s}, {"search", search_s}, {"replay", seconds_since(replay_start)}};
  return result;
}

}  // namespace rondo
