#include "combining.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <optional>
#include <utility>

#include "grouping.hpp"
#include "reordered_sums.hpp"
#include "replanted_sums.hpp"
#include "replayed.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/core/retiming.hpp"
#include "rondo/core/transposition.hpp"
#include "rondo/pipeline/bound.hpp"
#include "rondo/pipeline/halves.hpp"
#include "rondo/pipeline/kept_schedule.hpp"
#include "rondo/pipeline/registry.hpp"
#include "sums_in_parts.hpp"

namespace rondo {
namespace {

/// Ways to group GPUs that are tried at most.
constexpr std::size_t kMostGroupings = 3;
/// Of the time that groups take: where latency is less, it is the bytes that count.
constexpr double kLeastLatency = 0.14;
/// Of the time that groups are expected to take, what is left once their transfers are put in order; and of
/// that of any schedule, what is left at best.
constexpr double kShareInOrder = 0.9;
constexpr double kShareInBestOrder = 0.8;
/// Of the bound, latencies of both halves.
constexpr double kMuchLatency = 0.1;
/// Before both, for engines that go first.
constexpr double kShareOfQuickOnes = 0.2;
/// Halves this near to the bound of the whole leave other engines nothing worth their time, unless --gap asks
/// for more: little on small fabrics, more where trees of many GPUs take long.
constexpr double kNearEnough = 3e-3;
constexpr double kNearEnoughOfMany = 3e-2;
constexpr std::size_t kManyGpus = 64;
/// The same of schedules whose sums switches add up: each link carries a sum once, and in halves twice.
constexpr double kNearEnoughInSwitches = 2e-2;
/// What halves do not better by enough for their time: algorithms in many chunks, of which more would come as
/// near, for as many more sends.
constexpr double kNothingBetter = 5e-4;

bool adds_in_switches(const Topology& topology, const Schedule& schedule) {
  return std::ranges::any_of(schedule.sends, [&](const Send& send) {
    const NodeId entered = topology.link(send.link).dst;
    return send.op == SendOp::reduce && !topology.is_gpu(entered) && topology.node(entered).reduce;
  });
}

bool is_asked(const Problem& problem, bool combines) {
  const EngineInfo& engine = find_engine_or_auto(problem.options.engine);
  return problem.options.engine == "auto" || engine.combines == combines;
}

/// Collective. What an engine's refusal of a half says of the whole: nothing about other ways to add up.
std::optional<Incumbent> halves_answered(const Problem& problem, bool overlap, const RunContext& context) {
  const bool answers = find_engine_or_auto(problem.options.engine).answers;
  try {
    std::optional<Incumbent> halves = solve_in_halves(problem, overlap, context);
    if (halves && answers) {
      for (const char* figure : {"steps", "rounds", "step_cost_us"}) halves->found.metrics[figure] *= 2;
    }
    return halves;
  } catch (const Error& error) {
    if (error.code() != ExitCode::unavailable || !answers) throw;
    throw Error(error.code(),
                fmt::format("in halves, sums and then what spreads them, of {} steps and {} rounds each: {}",
                            problem.options.steps / 2, problem.options.step_rounds / 2, error.what()));
  }
}

/// The steps for sums of several GPUs each; the best schedule of all counts.
class AllReduction {
 public:
  AllReduction(const Problem& problem, const Bounds& bounds, const Toolbox& tools, StopRule& rule,
               const RunContext& context)
      : problem_(problem), bounds_(bounds), tools_(tools), rule_(rule), context_(context) {}

  Exploration run() {
    try_all();
    if (!found_.best.found.schedule) {
      if (first_fault_) throw *first_fault_;
      throw Error(
          ExitCode::unavailable,
          fmt::format("engine {} does not know sums of this shape (as many GPUs have to want each, and "
                      "--chunks has to be a multiple of their number); use --engine auto",
                      problem_.options.engine));
    }
    if (problem_.options.engine == "auto" && !is_within(kNearEnough))
      replant_sums(problem_, found_.best, rule_, context_);
    if (first_fault_) found_.best.found.remarks.push_back(left_out(*first_fault_));
    return std::move(found_);
  }

 private:
  void try_all() {
    const bool is_auto = problem_.options.engine == "auto";
    if (problem_.start) {
      // Alone, or beside an engine that is asked for.
      const Checkpoints::Prefix names(context_.checkpoints(), "kept-");
      try_engines(
          problem_, [](const EngineInfo&) { return false; }, is_auto);
      if (rule_.stop(finish_us())) return;
    }
    // No local search follows that would continue from what was kept: engines do as they do without it.
    Problem anew = problem_;
    anew.start = nullptr;
    if (is_auto) {
      try_quick_ones(anew);
      if (is_within(kNothingBetter) || is_near_in_switches()) return;
    }
    if (problem_.halves) keep_better(of_halves_there());
    // Sums are transposed in halves and groups, which bandwidth that changes does not allow.
    if (is_asked(problem_, false) && !problem_.topology->has_bandwidth_steps()) try_in_parts();
    const double near = problem_.topology->num_gpus() > kManyGpus ? kNearEnoughOfMany : kNearEnough;
    const bool is_tried = problem_.start && !is_auto;
    if (is_asked(problem_, true) && !is_tried && !is_within(near))
      try_engines(
          anew, [is_auto](const EngineInfo& engine) { return !is_auto || !engine.goes_first; }, false);
  }

  double finish_us() const {
    return found_.best.found.schedule ? found_.best.found.schedule->finish_us : kInfinity;
  }
  /// Or within --gap.
  bool is_within(double gap) const {
    if (!found_.best.found.schedule) return false;
    const double enough_us =
        problem_.options.gap ? rule_.enough_us() : std::max(rule_.enough_us(), rule_.bound().us * (1 + gap));
    return finish_us() <= enough_us || context_.interrupted();
  }

  bool is_near_in_switches() const {
    return is_within(kNearEnoughInSwitches) &&
           adds_in_switches(*problem_.topology, *found_.best.found.schedule);
  }

  void try_quick_ones(Problem quick) {
    if (quick.options.time_limit_s) {
      const double now_s = context_.seconds();
      quick.options.time_limit_s =
          now_s + kShareOfQuickOnes * std::max(0.0, *quick.options.time_limit_s - now_s);
    }
    const Checkpoints::Prefix names(context_.checkpoints(), "quick-");
    try_engines(quick, &EngineInfo::goes_first, true);
  }

  Exploration of_halves_there() const {
    const ProvenSchedule& there = *problem_.halves;
    Incumbent halves{.chunks = there.demand.chunks_per_contribution(), .engine = "halves/kept"};
    halves.found.schedule = there.schedule;
    const SynthesisResult::Candidate candidate{halves.engine, halves.chunks, there.schedule.finish_us};
    return {{}, std::move(halves), {candidate}};
  }

  template <class Solve>
  void try_parts(const Solve& solve, bool others_follow = false) {
    std::optional<Incumbent> found;
    try {
      found = solve();
    } catch (const Error& error) {
      const bool is_left_out = others_follow && error.code() == ExitCode::unavailable;
      if (!is_left_out && !takes_note_of_fault(error)) throw;
    }
    if (!found) return;
    const SynthesisResult::Candidate candidate{found->engine, found->chunks,
                                               found->found.schedule->finish_us};
    keep_better({{}, std::move(*found), {candidate}});
  }

  /// In groups that may end before what is there, and before halves; then, where latency lets them, halves;
  /// then in groups that may still end before.
  void try_in_parts() {
    const std::optional<Groupings>& groupings = this->groupings();
    const bool are_halves_there = problem_.halves != nullptr;
    if (!groupings) {
      if (!are_halves_there) try_halves();
      return;
    }
    // Where messages cost, halves take as long as both do, which their bounds tell best.
    const double halves_take_us = problem_.topology->has_message_costs() && !are_halves_there
                                      ? least_of_halves_us()
                                      : groupings->halves.latency_us;
    const std::size_t most = std::min(groupings->others.size(), kMostGroupings);
    std::size_t tried = 0;
    const auto try_groups = [&](double before_us) {
      for (; tried < most; ++tried) {
        const Grouping& grouping = groupings->others[tried];
        if (grouping.latency_us < kLeastLatency * std::max(grouping.about_us, bounds_.best().us)) continue;
        if (kShareInOrder * grouping.about_us >= std::min(finish_us(), before_us) ||
            is_within(kNothingBetter))
          return;
        // One part alone goes together between groups, however finely it is added up and spread.
        const bool goes_together = grouping.num_parts() == 1 && problem_.topology->has_message_costs();
        try_parts([&] { return solve_in_groups(problem_, grouping, goes_together, context_); }, true);
        if (grouping.groups.size() == 1 && problem_.options.chunks == 0)
          try_parts([&] { return solve_in_groups(problem_, grouping, true, context_); }, true);
      }
    };
    try_groups(std::max(groupings->halves.about_us, halves_take_us));
    if (!are_halves_there && halves_take_us < finish_us() && !is_within(kNothingBetter)) try_halves();
    try_groups(kInfinity);
  }

  double least_of_halves_us() const {
    const std::optional<Halves> halves = halves_of(problem_.demand);
    if (!halves) return kInfinity;
    double us = 0;
    for (const Demand* half : {&halves->gathering, &halves->spreading}) {
      Problem part{problem_.topology, *half, problem_.options, nullptr, problem_.sketch};
      part.is_part = true;
      us += bound(part, context_).best().us;
    }
    return us;
  }

  void try_halves() {
    // Messages cost as much in any order.
    const bool overlap = has_much_latency() && !problem_.topology->has_message_costs();
    try_parts([&] { return halves_answered(problem_, overlap, context_); });
  }

  const std::optional<Groupings>& groupings() {
    const bool is_auto = problem_.options.engine == "auto";
    if (!std::exchange(are_grouped_, true) && is_auto)
      groupings_ = groupings_of(*problem_.topology, problem_.demand);
    return groupings_;
  }

  /// So that adding up and spreading save time where they overlap.
  bool has_much_latency() {
    return groupings() && groupings()->halves.latency_us >= kMuchLatency * bounds_.best().us;
  }

  template <class Which>
  void try_engines(const Problem& problem, const Which& which, bool others_follow) {
    try {
      EngineRunner runner(problem, bounds_, tools_, context_,
                          [&](const EngineInfo& engine) { return std::invoke(which, engine); });
      if (!runner.engines().empty()) keep_better(explore(problem, runner, rule_, context_, false, to_beat()));
    } catch (const Error& error) {
      // What an engine does not support matters where nothing else is there.
      const bool matters = !others_follow && !found_.best.found.schedule;
      if (!takes_note_of_fault(error) && (matters || error.code() != ExitCode::unavailable)) throw;
    }
  }

  /// An engine that is asked for goes on.
  std::optional<ToBeat> to_beat() {
    if (problem_.options.engine != "auto" || !std::isfinite(finish_us())) return std::nullopt;
    return ToBeat{finish_us(), has_much_latency() ? finish_us() / kShareInBestOrder : finish_us()};
  }

  /// Whether it is a fault of Rondo, which all ranks know, and others are tried.
  bool takes_note_of_fault(const Error& error) {
    if (error.code() != ExitCode::internal || problem_.options.engine != "auto") return false;
    if (!first_fault_) first_fault_ = error;
    return true;
  }

  /// An engine that is asked for has the order that it makes.
  void keep_better(Exploration other) {
    const double other_us = other.best.found.schedule->finish_us;
    const double least_us = bounds_.best().us * (1 + kNothingBetter);
    if (kShareInBestOrder * other_us <= finish_us() && other_us > least_us && has_much_latency())
      reorder_sums(problem_, other.best, context_);
    std::vector<SynthesisResult::Candidate> candidates = std::move(found_.candidates);
    std::ranges::copy(other.candidates, std::back_inserter(candidates));
    if (other.best.found.schedule->finish_us < finish_us()) found_ = std::move(other);
    found_.candidates = std::move(candidates);
  }

  const Problem& problem_;
  const Bounds& bounds_;
  const Toolbox& tools_;
  StopRule& rule_;
  const RunContext& context_;
  Exploration found_;
  std::optional<Error> first_fault_;
  bool are_grouped_ = false;
  std::optional<Groupings> groupings_;  ///< once are_grouped_; nothing but for `auto`
};

}  // namespace

Problem transposed(const Problem& problem) {
  Problem turned{std::make_shared<const Topology>(transposed(*problem.topology)), transposed(problem.demand),
                 problem.options,
                 problem.start ? std::make_shared<const ProvenSchedule>(transposed(*problem.start)) : nullptr,
                 problem.sketch};
  turned.list_share = problem.list_share;
  turned.backwards = !problem.backwards;
  return turned;
}

SynthesisResult reversed_in_time(const Problem& problem, SynthesisResult result) {
  ProvenSchedule& proven = result.proven;
  Schedule schedule{
      reversed_in_time(proven.topology, proven.demand, proven.schedule.sends, proven.schedule.finish_us)};
  if (problem.demand.kind() != DemandKind::reduction) {
    for (Send& send : schedule.sends) send.op = SendOp::copy;
  }
  Demand demand = problem.demand.with_chunks(proven.demand.chunks_per_contribution());
  const Topology& topology = *problem.topology;
  // Message costs follow each other at the starts of transfers (rule 8), backwards at their ends: of slow
  // transfers side by side, some start later in the same order.
  ReplayResult replayed = replay(topology, demand, schedule.sends);
  if (!replayed.valid() && topology.has_message_costs()) {
    schedule = retimed({topology, schedule.sends}, topology, demand, problem.options.concurrency);
    replayed = replay(topology, demand, schedule.sends);
  }
  if (!replayed.valid()) throw_refused(result.engine + ", run backwards,", *replayed.violation);
  schedule.finish_us = replayed.finish_us;
  LowerBound bound{proven.lower_bound->us, transposed(proven.lower_bound->certificate)};
  result.proven = {*problem.topology, std::move(demand), std::move(schedule), std::move(bound),
                   proven.producer};
  result.gap = result.proven.schedule.finish_us / result.proven.lower_bound->us - 1;
  return result;
}

void check_all_reduction(const Problem& problem) {
  const auto& contributions = problem.demand.contributions();
  for (std::size_t i = 0; i < contributions.size(); ++i) {
    if (!contributions[i].held.empty()) {
      throw Error(
          ExitCode::unavailable,
          fmt::format("chunk {} of the demand: GPU {} holds a partial sum at first ('held'), and no "
                      "engine makes schedules from there; rondo bound and rondo verify know it, leave "
                      "it out to solve",
                      i, contributions[i].held.front().gpu.value));
    }
    if (!contributions[i].reduce && !contributions[i].sources.empty()) {
      throw Error(
          ExitCode::unavailable,
          fmt::format("chunk {} of the demand: {} GPUs hold it at first ('sources' without 'reduce'), "
                      "and engines copy from one; rondo bound and rondo verify know it, name one "
                      "source to solve",
                      i, contributions[i].sources.size()));
    }
  }
  const std::string& name = problem.options.engine;
  if (name == "auto") return;
  const EngineInfo& engine = find_engine(name);
  if (engine.works_in_rounds) {
    throw Error(
        ExitCode::unavailable,
        fmt::format("engine {} does sums for one GPU each (ReduceScatter, Reduce), not for several; use "
                    "--engine auto",
                    name));
  }
}

Exploration explore_all_reduction(const Problem& problem, const Bounds& bounds, const Toolbox& tools,
                                  StopRule& rule, const RunContext& context) {
  return AllReduction(problem, bounds, tools, rule, context).run();
}

}  // namespace rondo
