#include "rondo/pipeline/frontier.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "combining.hpp"
#include "rondo/core/error.hpp"
#include "rondo/engines/synchronous.hpp"
#include "rondo/parallel/map_parts.hpp"
#include "rondo/parallel/messages.hpp"
#include "rondo/pipeline/bound.hpp"
#include "rondo/pipeline/registry.hpp"

namespace rondo {
namespace {

/// Questions that are dealt at a time: the same on any number of ranks.
constexpr std::size_t kBatch = 4;
/// How far a bound in floating point may be from the ratio of whole numbers that it stands for.
constexpr double kRatioSlack = 1e-9;

/// What is asked of the satisfiability solver, and how its figures become those of the problem.
struct Question {
  Problem problem;
  int chunks_factor = 1;
  int steps_factor = 1;
};

Question question_of(const Problem& problem) {
  switch (problem.demand.kind()) {
    case DemandKind::reduction:
      return {transposed(problem)};
    case DemandKind::all_reduction: {
      const Demand& demand = problem.demand;
      if (demand.collective() != Collective::allreduce) {
        throw Error(ExitCode::unavailable,
                    "rondo pareto knows AllReduce, and no custom sums for several GPUs; use rondo solve");
      }
      const Demand spreading = make_demand(Collective::allgather, demand.size_bytes(), demand.num_gpus(), 1,
                                           GpuId{0}, demand.shape());
      const int parts = static_cast<int>(demand.contributions().front().destinations.size());
      return {{problem.topology, spreading, problem.options}, parts, 2};
    }
    default:
      return {problem};
  }
}

std::shared_ptr<const Topology> without_latency(const Topology& topology) {
  TopologyData data = topology.data();
  for (Link& link : data.links) link.latency_us = link.message_us = 0;
  return std::make_shared<const Topology>(std::move(data));
}

bool is_cheaper(const FrontierTrial& a, const FrontierTrial& b) {
  return static_cast<std::int64_t>(a.rounds) * b.chunks < static_cast<std::int64_t>(b.rounds) * a.chunks;
}

class Walk {
 public:
  Walk(const Problem& problem, const FrontierOptions& options, const RunContext& context)
      : question_(question_of(problem)), options_(options), context_(context), solver_(make_toolbox().sat) {
    for (const FrontierTrial& trial : options.known) known_[key(trial)] = trial;
  }

  Frontier run() {
    const Topology& topology = *question_.problem.topology;
    const Demand& demand = question_.problem.demand;
    const StepInstance whole = make_step_instance(topology, demand, 1, 1);
    find_bound();
    for (int steps = std::max(1, least_steps(whole)); steps * question_.steps_factor <= options_.most_steps;
         ++steps) {
      ask(steps);
      if (frontier_.meets_bound) break;
    }
    return std::move(frontier_);
  }

 private:
  using Key = std::tuple<int, int, int>;
  static Key key(const FrontierTrial& trial) { return {trial.chunks, trial.steps, trial.rounds}; }

  /// Collective.
  void find_bound() {
    Problem links = question_.problem;
    links.topology = without_latency(*links.topology);
    const Bounds bounds = bound(links, context_);
    frontier_.bound = bounds.best();
    const double round_us = step_cost_us(*links.topology, links.demand, 0, 1);
    least_ = frontier_.bound.us / round_us;
    frontier_.least_rounds_per_chunk = least_ * question_.steps_factor / question_.chunks_factor;
    context_.tell(fmt::format("at least {:.6g} rounds a chunk", frontier_.least_rounds_per_chunk));
  }

  /// In the question's figures, by rounds a chunk.
  std::vector<FrontierTrial> candidates(int steps) const {
    std::vector<FrontierTrial> all;
    for (int rounds = steps; rounds <= steps + options_.extra_rounds; ++rounds) {
      const int most = static_cast<int>(std::floor(rounds / least_ * (1 + kRatioSlack)));
      for (int chunks = 1; chunks <= most; ++chunks) {
        const FrontierTrial trial{.chunks = chunks, .steps = steps, .rounds = rounds};
        if (!best_ || is_cheaper(trial, *best_)) all.push_back(trial);
      }
    }
    std::ranges::stable_sort(all, [](const FrontierTrial& a, const FrontierTrial& b) {
      return is_cheaper(a, b) || (!is_cheaper(b, a) && a.chunks < b.chunks);
    });
    return all;
  }

  FrontierTrial in_problem(FrontierTrial trial) const {
    trial.chunks *= question_.chunks_factor;
    trial.steps *= question_.steps_factor;
    trial.rounds *= question_.steps_factor;
    return trial;
  }

  /// Collective.
  void ask(int steps) {
    const std::vector<FrontierTrial> all = candidates(steps);
    bool is_least = true;
    for (std::size_t first = 0; first < all.size(); first += kBatch) {
      const std::size_t count = std::min(kBatch, all.size() - first);
      for (const FrontierTrial& trial : answers(std::span(all).subspan(first, count))) {
        frontier_.trials.push_back(in_problem(trial));
        if (trial.status == SatStatus::unknown) is_least = false;
        if (trial.status != SatStatus::satisfiable) continue;
        best_ = trial;
        frontier_.points.push_back({in_problem(trial), is_least});
        frontier_.meets_bound = trial.rounds_per_chunk() <= least_ * (1 + kRatioSlack);
        const FrontierTrial& shown = frontier_.points.back().trial;
        context_.tell(fmt::format("{} chunks, {} steps, {} rounds", shown.chunks, shown.steps, shown.rounds));
        keep();
        return;
      }
      keep();
    }
  }

  void keep() const {
    if (options_.keep) options_.keep(frontier_.trials);
  }

  /// Collective.
  std::vector<FrontierTrial> answers(std::span<const FrontierTrial> asked) {
    std::vector<FrontierTrial> all(asked.begin(), asked.end());
    std::vector<std::size_t> open;
    std::vector<double> work;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto known = known_.find(key(in_problem(all[i])));
      if (known != known_.end()) {
        all[i].status = known->second.status;
        all[i].conflicts = known->second.conflicts;
      } else {
        open.push_back(i);
        work.push_back(all[i].chunks);
      }
    }
    const auto outcomes = map_parts(context_.communicator, work,
                                    [&](std::size_t part) { return to_message(answered(all[open[part]])); });
    for (std::size_t part = 0; part < outcomes.size(); ++part) {
      if (outcomes[part].error) throw *outcomes[part].error;
      all[open[part]] = from_message<FrontierTrial>(outcomes[part].value);
    }
    if (context_.interrupted())
      throw Error(ExitCode::stopped, "stopped; the same command goes on from what is answered");
    return all;
  }

  FrontierTrial answered(FrontierTrial trial) const {
    const StepInstance instance =
        make_step_instance(*question_.problem.topology, question_.problem.demand.with_chunks(trial.chunks),
                           trial.steps, trial.rounds);
    SolveLimits limits;
    limits.interrupt = context_.interrupt;
    const std::filesystem::path proof = options_.proof ? options_.proof(in_problem(trial)) : "";
    const StepAnswer answer =
        find_steps(instance, *solver_, {options_.max_conflicts, Deadline(limits)}, proof);
    trial.status = answer.status;
    trial.conflicts = answer.conflicts;
    return trial;
  }

  Question question_;
  const FrontierOptions& options_;
  const RunContext& context_;
  std::shared_ptr<const SatSolver> solver_;
  std::map<Key, FrontierTrial> known_;
  Frontier frontier_{.bound = {0, LatencyCertificate{}}};
  double least_ = 0;                                  ///< rounds a chunk, of the question
  std::optional<FrontierTrial> best_ = std::nullopt;  ///< of the question
};

}  // namespace

Frontier walk_frontier(const Problem& problem, const FrontierOptions& options, const RunContext& context) {
  return Walk(problem, options, context).run();
}

Problem problem_of(const Problem& problem, const FrontierTrial& trial) {
  Problem asked = problem;
  asked.options.engine = "steps";
  asked.options.chunks = trial.chunks;
  asked.options.steps = trial.steps;
  asked.options.step_rounds = trial.rounds;
  return asked;
}

std::vector<SizeInterval> size_intervals(const std::vector<FrontierPoint>& points, double alpha_us,
                                         double chunk_us_per_byte) {
  std::vector<SizeInterval> intervals;
  for (std::size_t i = 0; i < points.size(); ++i) {
    SizeInterval interval{0, std::numeric_limits<double>::infinity()};
    for (std::size_t j = 0; j < points.size(); ++j) {
      if (i == j) continue;
      // Of two points the one with more steps has fewer rounds a chunk.
      const double steps = points[i].trial.steps - points[j].trial.steps;
      const double ratio = points[j].trial.rounds_per_chunk() - points[i].trial.rounds_per_chunk();
      const double crossing = steps * alpha_us / (ratio * chunk_us_per_byte);
      if (j < i)
        interval.from_bytes = std::max(interval.from_bytes, crossing);
      else
        interval.to_bytes = std::min(interval.to_bytes, crossing);
    }
    intervals.push_back(interval);
  }
  return intervals;
}

}  // namespace rondo
