#include "scenarios.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "rondo/core/error.hpp"
#include "rondo/core/retiming.hpp"
#include "rondo/core/version.hpp"
#include "rondo/parallel/map_parts.hpp"
#include "rondo/parallel/messages.hpp"
#include "rondo/pipeline/kept_schedule.hpp"
#include "rondo/pipeline/registry.hpp"
#include "tenants.hpp"
#include "time_shares.hpp"

namespace rondo {
namespace {

constexpr double kCannotGo = std::numeric_limits<double>::infinity();
constexpr const char* kWorstOfAll = "the worst of all";

double figure_of(ScenarioObjective objective, const std::vector<double>& us) {
  if (objective == ScenarioObjective::worst) return *std::ranges::max_element(us);
  return std::accumulate(us.begin(), us.end(), 0.0) / static_cast<double>(us.size());
}

/// The problem's own fabric and the others.
std::vector<Scenario> fabrics_of(const Problem& problem) {
  std::vector<Scenario> fabrics{{kOwnFabric, problem.topology}};
  fabrics.insert(fabrics.end(), problem.scenarios->all.begin(), problem.scenarios->all.end());
  return fabrics;
}

Problem on_fabric(const Problem& problem, const std::shared_ptr<const Topology>& topology) {
  return {topology, problem.demand, problem.options};
}

/// Links of the problem's own fabric that all others have too, each with its least bandwidth and its largest
/// latency and message cost; nothing where links change over time, or that is one of the fabrics.
std::shared_ptr<const Topology> worst_of_all(const std::vector<Scenario>& fabrics) {
  TopologyData data = fabrics.front().topology->data();
  std::vector<char> is_gone(data.links.size(), 0);
  for (const Scenario& scenario : fabrics) {
    if (scenario.topology->has_bandwidth_steps()) return nullptr;
    const std::vector<LinkId> links = matching_links(*fabrics.front().topology, *scenario.topology);
    for (std::size_t l = 0; l < links.size(); ++l) {
      is_gone[l] = is_gone[l] != 0 || !links[l].valid() ? 1 : 0;
      if (!links[l].valid()) continue;
      const Link& there = scenario.topology->link(links[l]);
      Link& worst = data.links[l];
      worst.bandwidth_GBps = std::min(worst.bandwidth_GBps, there.bandwidth_GBps);
      worst.latency_us = std::max(worst.latency_us, there.latency_us);
      worst.message_us = std::max(worst.message_us, there.message_us);
    }
  }
  std::vector<LinkId> number(data.links.size());
  std::vector<Link> left;
  for (std::size_t l = 0; l < data.links.size(); ++l) {
    if (is_gone[l] != 0) continue;
    number[l] = LinkId(left.size());
    left.push_back(data.links[l]);
  }
  data.links = std::move(left);
  for (SharedBandwidth& group : data.shared_bandwidth) {
    std::vector<LinkId> links;
    for (const LinkId link : group.links) {
      if (number[link.index()].valid()) links.push_back(number[link.index()]);
    }
    group.links = std::move(links);
  }
  std::erase_if(data.shared_bandwidth, [](const SharedBandwidth& group) { return group.links.empty(); });
  data.name += "-worst";
  const auto is_alike = [&](const Scenario& scenario) {
    return std::ranges::equal(scenario.topology->links(), data.links, [](const Link& a, const Link& b) {
      return a.src == b.src && a.dst == b.dst && a.bandwidth_GBps == b.bandwidth_GBps &&
             a.latency_us == b.latency_us && a.message_us == b.message_us;
    });
  };
  if (std::ranges::any_of(fabrics, is_alike)) return nullptr;
  return std::make_shared<const Topology>(std::move(data));
}

class ScenarioSynthesis {
 public:
  ScenarioSynthesis(const Problem& problem, const RunContext& context)
      : problem_(problem),
        context_(context),
        fabrics_(fabrics_of(problem)),
        worst_(worst_of_all(fabrics_)),
        bounds_(fabrics_.size()) {}

  SynthesisResult run() {
    const Stopwatch clock;
    for (std::size_t f = 0; f < fabrics_.size() && !is_cut_short_; ++f) solve_on(fabrics_[f], f);
    if (worst_ && !is_cut_short_) solve_on({kWorstOfAll, worst_}, fabrics_.size());
    const double solved_s = clock.seconds();
    const std::size_t best = choose();
    Candidate& chosen = candidates_[best];

    Schedule schedule = replayed_elsewhere(chosen.result.proven, *problem_.topology,
                                           chosen.result.proven.demand, problem_.options.concurrency);
    SynthesisResult result{
        {*problem_.topology, chosen.result.proven.demand, std::move(schedule), bounds_.front(), producer()}};
    result.gap = result.proven.schedule.finish_us / result.proven.lower_bound->us - 1;
    result.engine = chosen.result.engine;
    result.seed = chosen.result.seed;
    result.metrics = chosen.result.metrics;
    result.remarks = chosen.result.remarks;
    result.limits_hit = limits_hit_;
    result.wall_parts_s = {{"search", solved_s},
                           {"scenarios", clock.seconds() - solved_s},
                           {"checkpoints", context_.checkpoints().seconds()}};
    Robustness robustness{.objective = problem_.scenarios->objective, .made_for = chosen.made_for};
    robustness.own_us = figure(0);
    for (std::size_t f = 0; f < fabrics_.size(); ++f)
      robustness.each.push_back({fabrics_[f].name, chosen.finishes_us[f], bounds_[f]});
    for (std::size_t c = 0; c < candidates_.size(); ++c) {
      if (std::isfinite(figure(c))) {
        result.candidates.push_back({candidates_[c].made_for + "/" + candidates_[c].result.engine,
                                     candidates_[c].result.proven.demand.chunks_per_contribution(),
                                     figure(c)});
      }
    }
    result.robustness = std::move(robustness);
    return result;
  }

 private:
  struct Candidate {
    std::string made_for;
    SynthesisResult result;
    std::vector<double> finishes_us = {};  ///< per fabric
  };

  double figure(std::size_t candidate) const {
    return figure_of(problem_.scenarios->objective, candidates_[candidate].finishes_us);
  }

  /// Collective.
  void solve_on(const Scenario& scenario, std::size_t number) {
    Problem part = on_fabric(problem_, scenario.topology);
    const std::size_t left = fabrics_.size() + (worst_ ? 1 : 0) - number;
    part.options.time_limit_s = time_limit_of_part(problem_.options, context_, left);
    const Checkpoints::Prefix names(context_.checkpoints(), fmt::format("scenario-{}-", number));
    try {
      // What nobody can reach where every link is at its worst may be reached on each fabric.
      check_reachable(*scenario.topology, problem_.demand);
      SynthesisResult solved = synthesize_as_one(part, context_);
      context_.tell(fmt::format("made for {}: {:.6g} us", scenario.name, solved.proven.schedule.finish_us));
      limits_hit_.insert(limits_hit_.end(), solved.limits_hit.begin(), solved.limits_hit.end());
      if (number < bounds_.size()) bounds_[number] = solved.proven.lower_bound;
      candidates_.push_back({scenario.name, std::move(solved)});
    } catch (const Error& error) {
      if (error.code() != ExitCode::unavailable && error.code() != ExitCode::bad_data) throw;
      const bool may_fail = number == fabrics_.size() || (!candidates_.empty() && context_.interrupted());
      if (!may_fail) throw;
    }
    is_cut_short_ = context_.interrupted();
  }

  /// Infinite where the schedule's order or paths do not go there.
  double finish_there(const ProvenSchedule& made, const Topology& topology) const {
    try {
      return replayed_elsewhere(made, topology, made.demand, problem_.options.concurrency).finish_us;
    } catch (const Error& error) {
      if (error.code() != ExitCode::unavailable && error.code() != ExitCode::bad_data) throw;
      return kCannotGo;
    }
  }

  /// Collective. The best candidate, all of which it times on all fabrics.
  std::size_t choose() {
    std::vector<double> work;
    for (const Candidate& candidate : candidates_) {
      work.insert(work.end(), fabrics_.size(),
                  static_cast<double>(candidate.result.proven.schedule.sends.size()));
    }
    const auto outcomes = map_parts(context_.communicator, work, [&](std::size_t i) {
      MessageWriter writer;
      writer.put(finish_there(candidates_[i / fabrics_.size()].result.proven,
                              *fabrics_[i % fabrics_.size()].topology));
      return writer.take();
    });
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      if (outcomes[i].error) throw *outcomes[i].error;
      MessageReader reader(outcomes[i].value);
      candidates_[i / fabrics_.size()].finishes_us.push_back(reader.get<double>());
    }
    std::size_t best = 0;
    for (std::size_t c = 1; c < candidates_.size(); ++c) {
      if (figure(c) < figure(best)) best = c;
    }
    if (!std::isfinite(figure(best))) {
      throw Error(
          ExitCode::unavailable,
          "no schedule was found that goes on the fabrics of all scenarios: each goes over links that "
          "another has lost; give fewer of them, or solve for each alone");
    }
    return best;
  }

  const Problem& problem_;
  const RunContext& context_;
  std::vector<Scenario> fabrics_;
  std::shared_ptr<const Topology> worst_;  ///< null: none besides the fabrics
  std::vector<std::optional<LowerBound>> bounds_;
  std::vector<Candidate> candidates_;
  std::vector<std::string> limits_hit_;
  bool is_cut_short_ = false;
};

[[noreturn]] void refuse_scenarios(const std::string& why) {
  throw Error(ExitCode::unavailable,
              fmt::format("--scenarios asks for a schedule for several fabrics, {}", why));
}

}  // namespace

double Robustness::figure_us() const {
  std::vector<double> us;
  for (const ScenarioOutcome& outcome : each) us.push_back(outcome.finish_us);
  return figure_of(objective, us);
}

double Robustness::bound_us() const {
  std::vector<double> us;
  for (const ScenarioOutcome& outcome : each) us.push_back(outcome.lower_bound ? outcome.lower_bound->us : 0);
  return figure_of(objective, us);
}

void check_scenarios(const Problem& problem) {
  const EngineInfo& engine = find_engine_or_auto(problem.options.engine);
  if (is_shared(problem)) refuse_scenarios("and several tenants share one; leave one of them out");
  if (problem.start) refuse_scenarios("and --from begins with one of its own; leave one of them out");
  if (problem.sketch)
    refuse_scenarios("and a sketch says how data move on one of them; give --sketch-parts links");
  if (engine.works_in_rounds || engine.answers) {
    refuse_scenarios(
        fmt::format("and engine {} is for one; use --engine auto, or another one", problem.options.engine));
  }
  for (const Scenario& scenario : fabrics_of(problem)) {
    try {
      check_reachable(*scenario.topology, problem.demand);
      matching_links(*problem.topology, *scenario.topology);
      check_options(on_fabric(problem, scenario.topology));
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("scenario '{}': {}", scenario.name, error.what()));
    }
  }
}

SynthesisResult synthesize_for_scenarios(const Problem& problem, const RunContext& context) {
  check_scenarios(problem);
  return ScenarioSynthesis(problem, context).run();
}

}  // namespace rondo
