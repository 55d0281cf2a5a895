#include "rondo/pipeline/synthesize.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "adapt.hpp"
#include "both_ways.hpp"
#include "canonical_demand.hpp"
#include "check_options.hpp"
#include "combining.hpp"
#include "even_links.hpp"
#include "explore.hpp"
#include "improve.hpp"
#include "join.hpp"
#include "known_algorithms.hpp"
#include "late_sums.hpp"
#include "links_of_groups.hpp"
#include "replayed.hpp"
#include "rondo/bounds/bounds.hpp"
#include "rondo/core/late_sums.hpp"
#include "rondo/core/relay_memory.hpp"
#include "rondo/core/version.hpp"
#include "rondo/pipeline/kept_schedule.hpp"
#include "round_steps.hpp"
#include "scenarios.hpp"
#include "shared_bounds.hpp"
#include "step_rules.hpp"
#include "tenants.hpp"
#include "time_left.hpp"
#include "time_shares.hpp"
#include "without_relays.hpp"

/// The main job: bound, explore, improve, prove.
namespace rondo {
namespace {

/// Wall time of each step, for the report.
class Steps {
 public:
  template <class Step>
  auto timed(const std::string& name, const Step& step) {
    const Stopwatch clock;
    const Ended ended{*this, name, clock};
    return step();
  }
  void count_apart(const std::string& name, const std::string& of, double seconds) {
    wall_s_[name] += seconds;
    wall_s_[of] -= seconds;
  }
  const std::map<std::string, double>& wall_s() const { return wall_s_; }

 private:
  struct Ended {
    Steps& steps;
    const std::string& name;
    const Stopwatch& clock;
    ~Ended() { steps.wall_s_[name] += clock.seconds(); }
  };
  std::map<std::string, double> wall_s_;
};

/// Collective. The incumbent with its lower bound, replayed unless the rank that found it has done so.
ProvenSchedule prove(const Problem& problem, const LowerBound& bound, Incumbent& best,
                     const RunContext& context) {
  Schedule& schedule = *best.found.schedule;
  Demand demand = problem.demand.with_chunks(best.chunks);
  const std::string whose = "engine " + best.engine;
  if (best.dealt) {
    const double finish_us =
        dealt_finish_us(context.communicator, *problem.topology, demand, schedule.sends, whose);
    schedule.finish_us = checked_finish_us(schedule.finish_us, finish_us, whose);
  } else if (!best.is_replayed) {
    schedule.finish_us = replayed_finish_us(*problem.topology, demand, schedule.sends, whose);
  }
  return {*problem.topology, std::move(demand), std::move(schedule), bound, producer()};
}

void append(std::vector<std::string>& to, const std::vector<std::string>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

/// What the report says besides the schedule.
void describe(const Exploration& found, SynthesisResult& result) {
  const Schedule& schedule = result.proven.schedule;
  result.gap = schedule.finish_us / result.proven.lower_bound->us - 1;
  result.engine = found.best.engine;
  result.seed = found.best.seed;
  result.metrics = found.best.found.metrics;
  append(result.remarks, found.best.found.remarks);
  append(result.limits_hit, found.best.found.limits_hit);
  result.candidates = found.candidates;
  result.by_chunks = best_by_chunks(found.state.trials);
  result.dealt = found.best.dealt;
  const DealtSchedule size = result.dealt.value_or(
      DealtSchedule{schedule.sends.size(), most_sends_on_a_link(schedule, result.proven.topology)});
  result.by_chunks[found.best.chunks] = {schedule.finish_us, size.num_sends, size.most_sends_on_a_link};
  result.rounds = found.rounds;
}

/// Collective.
SynthesisResult finished(const Problem& problem, const Bounds& bounds, Exploration& found,
                         const StopRule& rule, Steps& steps, const RunContext& context) {
  SynthesisResult result{
      steps.timed("replay", [&] { return prove(problem, bounds.best(), found.best, context); })};
  describe(found, result);
  append(result.remarks, bounds.remarks);
  if (has_limited_relays(*problem.topology, problem.demand)) {
    result.remarks.emplace_back(
        "GPUs have little memory for what they only pass on: not improved by large-neighbourhood search");
  }
  result.limits_hit.insert(result.limits_hit.begin(), rule.limits_hit().begin(), rule.limits_hit().end());
  result.wall_parts_s = steps.wall_s();
  result.wall_parts_s["checkpoints"] = context.checkpoints().seconds();
  return result;
}

/// Of sums that were scheduled backwards, what is known of them forwards.
SynthesisResult with_knowledge_of_sums(const Problem& problem, SynthesisResult result) {
  LowerBound& bound = *result.proven.lower_bound;
  if (auto found = find_knowledge_of_sums(problem.instance(), problem.options.symmetry, bound.us)) {
    bound = std::move(*found);
    result.gap = result.proven.schedule.finish_us / bound.us - 1;
  }
  return result;
}

/// Collective. The main job for a problem on links that engines take as they are.
SynthesisResult solve_on_links(const Problem& problem, const RunContext& context) {
  const DemandKind kind = problem.demand.kind();
  const bool in_rounds = works_in_rounds(problem);
  const Toolbox tools = prepare_toolbox(problem.options, context);
  Steps steps;

  const auto adapted_by = [&](const Bounds& known, StopRule& rule) {
    return steps.timed("search", [&] { return adapt(problem, known, tools, rule, context); });
  };
  std::optional<Adapted> adapted;
  const bool may_adapt = !in_rounds && kind != DemandKind::all_reduction;
  if (may_adapt && problem.known_bound && !problem.bounds) {
    const Bounds known{{*problem.known_bound}};
    StopRule rule(problem, known, context);
    adapted = adapted_by(known, rule);
    if (adapted && adapted->is_enough) return finished(problem, known, adapted->found, rule, steps, context);
  }
  const Bounds bounds = steps.timed(
      "bounds", [&] { return problem.bounds ? *problem.bounds : shared_bounds(problem, tools, context); });
  StopRule rule(problem, bounds, context);

  Exploration found;
  const auto take_if_earlier = [&](Incumbent& other) {
    if (other.found.schedule->finish_us < found.best.found.schedule->finish_us) std::swap(found.best, other);
  };
  std::vector<Incumbent> known;
  const auto weigh_known_algorithms = [&] {
    known = steps.timed("known_algorithms",
                        [&] { return known_algorithms(problem, bounds, tools, found, rule, context); });
  };
  std::vector<Incumbent> others;  // that joining may begin with
  // Local search goes on until a time limit.
  const bool weighs_before = problem.options.time_limit_s && may_improve(problem);
  if (in_rounds) {
    found = steps.timed("search", [&] { return explore_for_rounds(problem, bounds, tools, context); });
    steps.timed("rounds", [&] { improve_by_rounds(problem, tools, found, rule, context); });
    steps.count_apart("round_files", "rounds", found.round_files_s);
  } else if (kind == DemandKind::all_reduction) {
    found =
        steps.timed("search", [&] { return explore_all_reduction(problem, bounds, tools, rule, context); });
  } else {
    if (adapted) {
      adapted->is_enough = rule.stop(adapted->found.best.found.schedule->finish_us);
    } else {
      adapted = adapted_by(bounds, rule);
    }
    if (adapted && adapted->is_enough) {
      found = std::move(adapted->found);
    } else {
      std::optional<EngineInfo> kept;
      if (adapted)
        kept = kept_engine(*std::move(adapted->found.best.found.schedule), adapted->found.best.chunks);
      EngineRunner runner(
          problem, bounds, tools, context, [](const EngineInfo&) { return true; }, std::move(kept));
      found = steps.timed("search", [&] { return explore(problem, runner, rule, context, context.deals); });
      if (weighs_before) weigh_known_algorithms();
      const double until = std::min(share_before_rounds(problem, found.best, rule, context),
                                    may_join(problem) ? kTimeBeforeJoining : 1);
      others = starts_of_joining(problem, runner, found.state);
      const auto listed = until < 1 ? std::optional(found.best) : std::nullopt;
      steps.timed("improvement",
                  [&] { improve(problem, runner, found, rule, context, share_of_work(problem), until); });
      if (!found.best.dealt)
        steps.timed("rounds", [&] { improve_in_turn(problem, tools, listed, found.best, rule, context); });
    }
  }
  if (!weighs_before) weigh_known_algorithms();
  std::ranges::for_each(known, take_if_earlier);
  // A sketch says who sends what: no other paths then.
  if (!problem.sketch && may_join(problem)) {
    std::ranges::move(known, std::back_inserter(others));
    steps.timed("joining", [&] { join(problem, found.best, std::move(others), rule, context); });
  }
  if (auto synchronous = steps.timed("known_algorithms", [&] {
        return better_synchronous_algorithm(problem, bounds, tools, found, rule, context);
      }))
    take_if_earlier(*synchronous);

  return finished(problem, bounds, found, rule, steps, context);
}

/// Collective. The main job for a problem as it is to be solved, in the end on all of a fabric and forwards
/// in time.
SynthesisResult solve(const Problem& problem, const RunContext& context) {
  const RunContext whole = context.for_whole_schedules();
  if (problem.demand.forbids_relays()) return of_whole_fabric(problem, solve(on_members(problem), whole));
  if (problem.demand.kind() == DemandKind::reduction)
    return with_knowledge_of_sums(problem, reversed_in_time(problem, solve(transposed(problem), whole)));
  if (const auto even = on_even_links(problem))
    return solve_on_even_links(problem, *even, whole,
                               [&](const Problem& one) { return solve_on_links(one, whole); });
  // Halves go one after the other as wholes.
  return solve_on_links(problem, problem.demand.kind() == DemandKind::all_reduction ? whole : context);
}

}  // namespace

SynthesisResult synthesize(const Problem& problem, const RunContext& context) {
  check_reachable(*problem.topology, problem.demand);
  if (problem.scenarios) return synthesize_for_scenarios(problem, context.for_whole_schedules());
  if (is_shared(problem)) return synthesize_for_tenants(problem, context.for_whole_schedules());
  return synthesize_as_one(problem, context);
}

SynthesisResult synthesize_as_one(const Problem& problem, const RunContext& context) {
  if (const auto inside = within_groups(problem)) {
    const RunContext whole = context.for_whole_schedules();
    return on_whole_links(problem, synthesize_as_one(*inside, whole), whole);
  }
  if (has_late_sums(problem.demand)) {
    check_options(problem);
    return synthesize_late_sums(problem, context.for_whole_schedules());
  }
  // Rounds and kept schedules are stored with the chunks that are asked for.
  const bool is_free = !works_in_rounds(problem) && !problem.start && !problem.halves;
  if (const auto form = is_free ? canonical(problem.demand) : std::nullopt) {
    const Problem in_form{problem.topology, form->demand, problem.options, nullptr, problem.sketch};
    return as_asked(problem.demand, *form, synthesize_as_one(in_form, context.for_whole_schedules()));
  }
  const Problem divided = in_parts(problem);
  check_divided(divided);
  const RunContext whole = context.for_whole_schedules();
  const auto as_it_is = [&](const Problem& one) { return solve(one, whole); };
  return may_be_turned(divided) ? solve_both_ways(divided, context, as_it_is) : solve(divided, context);
}

}  // namespace rondo
