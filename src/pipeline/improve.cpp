#include "improve.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <numeric>
#include <string>

#include "chunk_counts.hpp"
#include "rondo/core/random.hpp"
#include "rondo/core/units.hpp"
#include "rondo/decomp/free_group.hpp"
#include "rondo/engines/plain_allgather.hpp"
#include "rondo/local_search/improvement.hpp"
#include "step_rules.hpp"

namespace rondo {
namespace {

constexpr const char* kImprovementCheckpoint = "improvement";
constexpr const char* kSymmetricCheckpoint = "improvement-symmetric";
constexpr const char* kPrefixOfListed = "listed-";
/// Up to this gap a schedule of a quick engine leaves little to be found from other starts.
constexpr double kLittleOfQuick = 0.01;
/// Until when symmetric plans may be searched, as a share of the time that local search has; and how much of
/// the work, and of what may be in vain, is left to others after that. With less than so many automorphisms
/// the others begin anew: the best symmetric plan is not always near the best one.
constexpr double kShareOfSymmetric = 0.5;
constexpr double kWorkAfterSymmetric = 0.25;
constexpr std::size_t kManyAutomorphisms = 8;
constexpr std::size_t kLeastAutomorphisms = 4;  ///< a try costs too much otherwise
/// Of the time that is left, what a restart may take.
constexpr double kShareOfRestart = 0.5;
/// Far from the bound multicast is given more work than --improve-work: as many times as the gap has kNear,
/// kMostEffort at most, and less in plans of more than kSmallPlan deliveries, where it is too few tries to
/// find something.
constexpr double kNear = 2.5e-3;
constexpr double kMostEffort = 8;
constexpr double kSmallPlan = 2e4;
/// Beyond so many deliveries local search takes longer to begin than a gap that is met is worth.
constexpr double kManyDeliveries = 5e4;
/// Of the work, what is spent on a kept schedule that is not near enough where near is enough.
constexpr double kShareOfFarOnes = 0.3;
/// In --improve-work: after so much that gains nothing no further effort is made.
constexpr double kGainless = 1.6;
/// Of the work, what may be in vain.
constexpr double kIdleShare = 0.02;

class LocalSearch {
 public:
  /// From `begins`, which is `exploration` or a part of it with checkpoints of its own.
  LocalSearch(const Problem& problem, EngineRunner& runner, const Exploration& exploration,
              Exploration& begins, StopRule& rule, const RunContext& context, double share, double until)
      : problem_(problem),
        runner_(runner),
        exploration_(exploration),
        state_(begins.state),
        best_(begins.best),
        prefix_(&begins == &exploration ? "" : kPrefixOfListed),
        rule_(rule),
        context_(context),
        share_(share),
        until_(until) {}

  void run();

 private:
  std::vector<ImprovementTask::Start> starts() const;
  ImprovementTask task_of_all();
  void set_work(ImprovementTask& task) const;
  int most_chunks_planned() const {
    return static_cast<int>(kMostPlannedTransfers / problem_.demand.with_chunks(1).num_deliveries());
  }
  std::optional<OrbitPlans> symmetric_plans() const;
  Improvement improve_symmetric(const ImprovementTask& of_all, const OrbitPlans& plans);
  void offer_restarts(ImprovementTask& task) const;
  void keep_states(ImprovementTask& task, const char* name);
  void count(const Improvement& improvement);
  void take(Improvement improvement);
  Bytes packed_best() const;
  Candidate restart_of(int chunks, std::size_t variant) const {
    return restart_candidate(runner_.engines(), problem_.demand, problem_.options, state_.trials, chunks,
                             variant);
  }
  /// The candidate whose schedule local search began with, or took as it is.
  Candidate candidate_of(const ImprovementOrigin& origin) const;

  const Problem& problem_;
  EngineRunner& runner_;
  const Exploration& exploration_;
  const SearchState& state_;
  Incumbent& best_;
  const std::string prefix_;  ///< of the names of checkpoints
  StopRule& rule_;
  const RunContext& context_;
  const double share_;  ///< of the work
  const double until_;  ///< share of the time limit
  bool is_kept_ = true;
};

/// A task's clock: the time from now until a share of the time limit is over.
void set_clock(ImprovementTask& task, double limit_s, double from, double until, const StopRule& rule) {
  task.time_spent = [&rule, from, until] { return (rule.time_share() - from) / (until - from); };
  task.time_limit_s = (until - from) * limit_s;
  task.deadline = [&rule, until] { return rule.deadline(until); };
}

/// The best schedules of the portfolio, one a number of chunks; rerun where they are needed.
std::vector<ImprovementTask::Start> LocalSearch::starts() const {
  std::vector<ImprovementTask::Start> starts;
  for (const std::size_t i : best_improvable(state_.trials)) {
    const Trial& trial = state_.trials[i];
    starts.push_back({trial.candidate.chunks, trial.finish_us, [this, i] {
                        return i == state_.best && !best_.dealt ? *best_.found.schedule
                                                                : runner_.rerun(state_.trials[i].candidate);
                      }});
  }
  return starts;
}

/// Restarts are of the list scheduler that has the least work.
void LocalSearch::offer_restarts(ImprovementTask& task) const {
  const std::vector<Trial>& trials = state_.trials;
  double slowest_GBps = kInfinity;
  for (const Link& link : problem_.topology->links())
    slowest_GBps = std::min(slowest_GBps, link.bandwidth_GBps);
  // What whole chunks leave no room for, and one chunk more.
  const auto expected_us = [&](int chunks) {
    const double chunk_bytes = problem_.demand.contributions().front().bytes / chunks;
    return rule_.least_us(chunks) + transmission_us(chunk_bytes, slowest_GBps);
  };
  // What makes its work a little more than its deliveries is not counted.
  task.restart_work = std::max(1.0, std::floor(restart_of(problem_.demand.chunks_per_contribution(), 0).work /
                                               problem_.demand.num_deliveries()));
  task.restart_chunks = restart_counts(problem_.demand, problem_.options, trials, rule_.bound().us,
                                       task.restart_work, expected_us);
  if (!task.restart_chunks.empty()) {
    double work = 0;
    for (const Trial& trial : trials) work += std::isfinite(trial.finish_us) ? trial.candidate.work : 0;
    const int chunks = task.restart_chunks.front();
    task.restart_share = task.time_spent() / work * restart_of(chunks, 0).work /
                         problem_.demand.with_chunks(chunks).num_deliveries();
  }
  task.restart = [this](int chunks, std::size_t variant, RestartLimits limits) -> std::optional<Schedule> {
    const Candidate candidate = restart_of(chunks, variant);
    if (limits == RestartLimits::none) return runner_.rerun(candidate);
    std::optional<double> until_s = problem_.options.time_limit_s;
    if (until_s) {
      const double now_s = context_.clock.seconds();
      *until_s = now_s + kShareOfRestart * std::max(0.0, until_ * *until_s - now_s);
    }
    return runner_.run(candidate, until_s).schedule;
  };
}

void LocalSearch::keep_states(ImprovementTask& task, const char* name) {
  is_kept_ = true;
  task.keep = [this, name = prefix_ + name](const std::function<Bytes()>& state, bool ends) {
    Checkpoints& checkpoints = context_.checkpoints();
    if (!ends) {
      is_kept_ = checkpoints.offer(context_.communicator, name, state);
    } else if (!is_kept_ && context_.interrupted()) {
      // The portfolio is over: its last state goes first, so that a later start finds both.
      checkpoints.keep(context_.communicator, kSearchCheckpoint,
                       [&] { return pack_search(exploration_.state, packed_best()); });
      checkpoints.keep(context_.communicator, name, state);
    }
  };
}

/// Without its sends where it is dealt: the search makes them again.
Bytes LocalSearch::packed_best() const {
  if (!exploration_.best.dealt) return pack_result(exploration_.best.found);
  EngineResult found = exploration_.best.found;
  found.schedule.reset();
  return pack_result(found);
}

Candidate LocalSearch::candidate_of(const ImprovementOrigin& origin) const {
  if (origin.variant) return restart_of(origin.chunks, *origin.variant);
  for (const std::size_t i : best_improvable(state_.trials)) {
    if (state_.trials[i].candidate.chunks == origin.chunks) return state_.trials[i].candidate;
  }
  return state_.trials[state_.best].candidate;
}

/// By what is known, the more the farther it is from the bound; but not before transfers are joined, which
/// finds more.
void LocalSearch::set_work(ImprovementTask& task) const {
  const SolveOptions& options = problem_.options;
  double effort = 1;
  if (!problem_.demand.is_unicast() && !options.enough_gap && !may_join(problem_)) {
    double size = problem_.demand.with_chunks(best_.chunks).num_deliveries() / kSmallPlan;
    // There most of the work is done in few chunks, of however many the best schedule is.
    if (size > 1 && begins_with_replanting(*problem_.topology, problem_.demand)) size = 1;
    effort = std::clamp((task.known_us / rule_.bound().us - 1) / kNear, 1.0,
                        std::max(1.0, kMostEffort / std::max(1.0, size)));
  }
  task.idle_work = kIdleShare * effort * options.improve_work;
  task.work_limit = options.time_limit_s ? kInfinity : options.improve_work * (options.gap ? 10 : effort);
  task.work_limit *= share_;
  if (!options.time_limit_s && !options.gap) task.gainless_work = kGainless * options.improve_work;
}

ImprovementTask LocalSearch::task_of_all() {
  const SolveOptions& options = problem_.options;
  ImprovementTask task{*problem_.topology, problem_.demand, rule_.bound().us, options.seed, starts()};
  task.is_kept = is_adapted(problem_);
  task.known_us = best_.found.schedule->finish_us;
  task.concurrency = options.concurrency;
  task.most_chunks = most_chunks_of_improvement(problem_.demand, options);
  set_work(task);
  task.most_streams = static_cast<std::size_t>(options.streams);
  task.stop = [&](double finish_us) { return rule_.stop(finish_us); };
  if (options.time_limit_s) set_clock(task, *options.time_limit_s, 0, until_, rule_);
  task.interrupted = [&] { return context_.interrupted(); };
  task.least_us = [&](int chunks) { return rule_.least_us(chunks); };
  const bool is_listed = runner_.engine_of(state_.trials[state_.best].candidate).supports_local_search;
  if (!is_adapted(problem_) && is_listed) offer_restarts(task);
  const std::size_t num_sends = best_.dealt ? best_.dealt->num_sends : best_.found.schedule->sends.size();
  const double sends_a_chunk = static_cast<double>(num_sends) / best_.chunks;
  task.progress = [this, sends_a_chunk](std::uint64_t rounds, int chunks, double finish_us) {
    rule_.expect(sends_a_chunk * std::max(chunks, best_.chunks));
    if (rounds % 16 != 0) return;
    context_.tell(fmt::format("improvement: {} rounds, {} chunks, {:.6g} us, gap {:.3f}%", rounds, chunks,
                              finish_us, 100 * (finish_us / rule_.bound().us - 1)));
  };
  return task;
}

/// Nothing where automorphisms are few, or plans too large, or the schedule is a kept one, which is near.
std::optional<OrbitPlans> LocalSearch::symmetric_plans() const {
  const Topology& topology = *problem_.topology;
  if (!problem_.options.symmetry || is_adapted(problem_) || topology.has_bandwidth_steps() ||
      most_chunks_planned() < 1 || !is_plain_allgather(problem_.instance()))
    return std::nullopt;
  FreeGroup group = find_free_group(topology, demand_pattern(problem_.demand));
  if (group.order() < kLeastAutomorphisms) return std::nullopt;
  return OrbitPlans(topology, problem_.demand, std::move(group), problem_.options.concurrency);
}

/// Collective. A try costs as many times less as there are automorphisms.
Improvement LocalSearch::improve_symmetric(const ImprovementTask& of_all, const OrbitPlans& plans) {
  const double until = kShareOfSymmetric * until_;
  ImprovementTask task = of_all;
  task.orbits = &plans;
  task.restart_chunks.clear();
  // What they unfold to is no larger than what is improved otherwise.
  const int most = most_chunks_planned();
  std::erase_if(task.starts, [&](const ImprovementTask::Start& start) { return start.chunks > most; });
  task.most_chunks = std::min(task.most_chunks, most);
  if (task.starts.empty() || rule_.time_share() >= until) return {};
  if (problem_.options.time_limit_s) set_clock(task, *problem_.options.time_limit_s, 0, until, rule_);
  keep_states(task, kSymmetricCheckpoint);
  return rondo::improve(task, context_.communicator,
                        context_.checkpoints().newest(context_.communicator, prefix_ + kSymmetricCheckpoint));
}

void LocalSearch::count(const Improvement& improvement) {
  std::map<std::string, double>& metrics = best_.found.metrics;
  metrics["improvement_tries"] += static_cast<double>(improvement.tries);
  metrics["improvement_successes"] += static_cast<double>(improvement.successes);
  metrics["improvement_merged"] += static_cast<double>(improvement.merged);
}

void LocalSearch::take(Improvement improvement) {
  const Candidate origin = candidate_of(improvement.origin);
  best_.found.schedule = std::move(improvement.schedule);
  best_.chunks = improvement.chunks;
  best_.engine = runner_.label(origin);
  best_.seed = origin.seed;
  best_.is_replayed = false;
  best_.dealt.reset();
}

void LocalSearch::run() {
  best_.found.metrics["finish_before_improvement_us"] = best_.found.schedule->finish_us;
  best_.found.metrics["chunks_before_improvement"] = best_.chunks;
  ImprovementTask task = task_of_all();
  const std::optional<OrbitPlans> plans = symmetric_plans();
  Improvement symmetric = plans ? improve_symmetric(task, *plans) : Improvement{};
  const bool is_earlier = symmetric.schedule.has_value();
  const bool goes_on = is_earlier && plans->num_automorphisms() >= kManyAutomorphisms;
  count(symmetric);
  // What follows begins with what a later start will find here.
  if ((plans && context_.interrupted()) || (is_earlier && rule_.stop(symmetric.schedule->finish_us))) {
    if (is_earlier) take(std::move(symmetric));
    return;
  }
  if (goes_on) {
    task.known_us = symmetric.schedule->finish_us;
    task.starts = {{symmetric.chunks, task.known_us, [&] { return *symmetric.schedule; }}};
    task.is_kept = true;
    set_work(task);
    task.work_limit *= kWorkAfterSymmetric;
    task.idle_work *= kWorkAfterSymmetric;
    task.idle_tries = static_cast<std::uint64_t>(kWorkAfterSymmetric * static_cast<double>(task.idle_tries));
  }
  keep_states(task, kImprovementCheckpoint);
  Improvement improvement =
      rondo::improve(task, context_.communicator,
                     context_.checkpoints().newest(context_.communicator, prefix_ + kImprovementCheckpoint));
  count(improvement);
  if (improvement.out_of_work && problem_.options.gap) rule_.hit("work");
  // Where rounds follow, it goes on with them.
  if (improvement.out_of_time && until_ >= 1 && rule_.limits_hit().empty()) rule_.hit("time");
  if (improvement.schedule &&
      (!is_earlier || improvement.schedule->finish_us < symmetric.schedule->finish_us)) {
    if (goes_on && !improvement.origin.variant) improvement.origin = symmetric.origin;
    take(std::move(improvement));
  } else if (is_earlier) {
    take(std::move(symmetric));
  }
}

/// Where the best schedule is far from the bound and of a quick engine: what others found. From there local
/// search, which grows the trees of few chunks anew, often ends earlier, however late it begins. Nothing of
/// large plans, where that takes long.
std::optional<Exploration> without_quick_ones(const Problem& problem, const Exploration& exploration,
                                              EngineRunner& runner, const StopRule& rule) {
  const auto is_quick = [&](const Trial& trial) { return runner.engine_of(trial.candidate).is_quick; };
  const std::vector<Trial>& trials = exploration.state.trials;
  if (problem.demand.num_deliveries() > kSmallPlan || !is_quick(trials[exploration.state.best]) ||
      exploration.best.found.schedule->finish_us <= rule.bound().us * (1 + kLittleOfQuick))
    return std::nullopt;
  Exploration others;
  std::ranges::copy_if(trials, std::back_inserter(others.state.trials), std::not_fn(is_quick));
  const std::vector<std::size_t> starts = best_improvable(others.state.trials);
  if (starts.empty()) return std::nullopt;
  others.state.best =
      *std::ranges::min_element(starts, {}, [&](std::size_t i) { return others.state.trials[i].finish_us; });
  const Candidate& candidate = others.state.trials[others.state.best].candidate;
  others.best.chunks = candidate.chunks;
  others.best.found.schedule = runner.rerun(candidate);
  others.best.found.remarks = exploration.best.found.remarks;
  others.best.found.limits_hit = exploration.best.found.limits_hit;
  others.best.engine = runner.label(candidate);
  others.best.seed = candidate.seed;
  return others;
}

}  // namespace

double share_of_work(const Problem& problem) {
  if (!is_adapted(problem)) return 1;
  return problem.options.enough_gap ? kShareOfFarOnes : kShareOfKept;
}

void improve(const Problem& problem, EngineRunner& runner, Exploration& exploration, StopRule& rule,
             const RunContext& context, double share, double until) {
  const SearchState& state = exploration.state;
  if (problem.options.improve_work <= 0 || best_improvable(state.trials).empty() ||
      rule.time_share() >= until)
    return;
  if (problem.options.gap && problem.demand.num_deliveries() > kManyDeliveries &&
      rule.stop(exploration.best.found.schedule->finish_us))
    return;
  const Trial& best = state.trials[state.best];
  const bool is_in_turns = !best.improvable && runner.engine_of(best.candidate).is_quick;
  const bool more_is_asked = problem.options.gap || problem.options.time_limit_s;
  if (is_in_turns && !more_is_asked && best.finish_us <= rule.bound().us * (1 + kLittleOfQuick)) return;
  if (std::optional<Exploration> listed = without_quick_ones(problem, exploration, runner, rule)) {
    const double until_listed = std::midpoint(rule.time_share(), until);
    LocalSearch(problem, runner, exploration, *listed, rule, context, share, until_listed).run();
    const bool is_earlier =
        listed->best.found.schedule->finish_us < exploration.best.found.schedule->finish_us;
    if (is_earlier) exploration.best = std::move(listed->best);
    if (is_earlier || context.interrupted()) return;
  }
  LocalSearch(problem, runner, exploration, exploration, rule, context, share, until).run();
}

void improve_further(const Problem& problem, Incumbent& best, StopRule& rule, const RunContext& context,
                     double until, std::uint64_t number) {
  const SolveOptions& options = problem.options;
  const double now = rule.time_share();
  if (now >= until) return;
  ImprovementTask task{*problem.topology, problem.demand, rule.bound().us, mix_bits(options.seed) + number};
  const Schedule start = *best.found.schedule;
  task.starts = {{best.chunks, start.finish_us, [&] { return start; }}};
  task.known_us = start.finish_us;
  task.concurrency = options.concurrency;
  task.most_chunks = most_chunks_of_improvement(problem.demand, options);
  task.work_limit = kInfinity;
  task.most_streams = static_cast<std::size_t>(options.streams);
  task.stop = [&](double finish_us) { return rule.stop(finish_us); };
  task.interrupted = [&] { return context.interrupted(); };
  task.least_us = [&](int chunks) { return rule.least_us(chunks); };
  set_clock(task, *options.time_limit_s, now, until, rule);
  Improvement improvement = rondo::improve(task, context.communicator);
  EngineResult& found = best.found;
  found.metrics["improvement_tries"] += static_cast<double>(improvement.tries);
  found.metrics["improvement_successes"] += static_cast<double>(improvement.successes);
  found.metrics["improvement_merged"] += static_cast<double>(improvement.merged);
  if (!improvement.schedule) return;
  found.schedule = std::move(improvement.schedule);
  best.chunks = improvement.chunks;
  best.is_replayed = false;
}

}  // namespace rondo
