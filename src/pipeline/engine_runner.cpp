#include "engine_runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>

#include "rondo/core/error.hpp"
#include "rondo/core/relay_memory.hpp"
#include "rondo/core/transfers.hpp"
#include "rondo/local_search/relay_fit.hpp"
#include "rondo/pipeline/kept_schedule.hpp"
#include "time_shares.hpp"

namespace rondo {

bool heeds_relay_memory(const EngineInfo& engine) {
  return !engine.combines && !engine.answers && !engine.works_in_rounds;
}

EngineRunner::EngineRunner(const Problem& problem, const Bounds& bounds, const Toolbox& tools,
                           const RunContext& context, const std::function<bool(const EngineInfo&)>& which,
                           std::optional<EngineInfo> kept)
    : problem_(problem),
      tools_(tools),
      context_(context),
      instance_(problem.instance()),
      is_limited_(has_limited_relays(*problem.topology, problem.demand)) {
  const SolveOptions& asked = problem.options;
  options_.seed = asked.seed;
  options_.epochs = asked.epochs;
  options_.limits.max_nodes = asked.max_nodes;
  options_.limits.interrupt = context.interrupt;
  options_.policy_is_asked = !asked.policy.empty();
  options_.concurrency = asked.concurrency;
  options_.join = asked.join;
  options_.symmetry = asked.symmetry;
  options_.early = asked.objective == Objective::early;
  options_.steps = asked.steps;
  options_.rounds = asked.step_rounds;
  options_.max_conflicts = asked.max_conflicts;
  options_.proof = asked.proof;
  options_.steady = bounds.steady;
  options_.packing = bounds.packing;
  options_.bound_us = bounds.best().us;
  const bool combines = problem.demand.kind() == DemandKind::all_reduction;
  for (const EngineInfo& engine : engine_registry()) {
    if (combines ? !engine.combines : !engine.spreads) continue;
    const bool schedules = (engine.heeds_bandwidth_steps || !problem.topology->has_bandwidth_steps()) &&
                           (!is_limited_ || heeds_relay_memory(engine));
    const bool applicable =
        asked.engine == "auto" && schedules && which(engine) && engine.applicable(instance_, options_);
    if (!applicable && asked.engine != engine.name) continue;
    const auto sketched = problem.sketch ? sketched_engine(engine.name, problem.sketch) : std::nullopt;
    engines_.push_back(sketched.value_or(engine));
    if (engine.offers) {
      std::erase_if(engines_.back().policies, std::not_fn(engine.offers(instance_, options_)));
    }
    if (engine.finds_counts) engines_.back().found_counts = engine.finds_counts(instance_, problem.is_part);
    if (!engine.work_share) continue;
    engines_.back().work = [work = engine.work, share = engine.work_share(instance_, options_)](
                               const Demand& demand, const std::string& policy) {
      return share * work(demand, policy);
    };
  }
  if (problem.start) engines_.push_back(kept ? *std::move(kept) : kept_engine(problem));
  prepared_.resize(engines_.size());
  if (tools.on_all_ranks) prepare_all();
}

/// Before candidates are dealt: a rank that prepares an engine alone would wait for the others.
void EngineRunner::prepare_all() {
  EngineOptions options = options_;
  for (std::size_t e = 0; e < engines_.size(); ++e) {
    const double share = kShareOfPreparing / static_cast<double>(engines_.size() - e);
    options.limits.time_limit_s = limits_of_step(problem_.options, context_, share).time_limit_s;
    try {
      prepared_[e] = engines_[e].prepare(instance_, options, tools_);
    } catch (const Error& error) {
      // Each of its candidates fails with it, on whichever rank.
      prepared_[e] = [error](const Demand&, const EngineOptions&) -> EngineResult { throw error; };
    }
  }
}

Candidate EngineRunner::add(const std::string& engine) {
  engines_.push_back(find_engine(engine));
  prepared_.emplace_back();
  const EngineInfo& row = engines_.back();
  const int chunks = std::max(1, problem_.options.chunks);
  const std::string policy = row.policies.empty() ? "" : row.policies.front();
  return {engines_.size() - 1, chunks, policy, problem_.options.seed,
          row.work(problem_.demand.with_chunks(chunks), policy)};
}

EngineResult EngineRunner::run(const Candidate& candidate, std::optional<double> until_s, bool fold) {
  EngineOptions options = options_;
  options.fold = fold;
  if (until_s) options.limits.time_limit_s = std::max(0.0, *until_s - context_.clock.seconds());
  return run(candidate, std::move(options));
}

EngineResult EngineRunner::run(const Candidate& candidate, EngineOptions options) {
  options.policy = candidate.policy;
  options.seed = candidate.seed;
  PreparedEngine& engine = prepared_[candidate.engine];
  if (!engine) engine = engines_[candidate.engine].prepare(instance_, options, tools_);
  const Demand demand = problem_.demand.with_chunks(candidate.chunks);
  EngineResult result = engine(demand, options);
  // Where messages cost, transfers that meet in a switch cannot be told apart without numbers.
  if (result.schedule && problem_.topology->has_message_costs())
    number_transfers(*problem_.topology, demand, result.schedule->sends);
  if (result.schedule) {
    const auto fit = is_limited_ ? fitted_to_memory : by_whole_chunks;
    result.schedule = fit(*problem_.topology, demand, *std::move(result.schedule), options.concurrency);
  }
  return result;
}

Schedule EngineRunner::rerun(const Candidate& candidate) {
  EngineOptions options = options_;
  options.limits.interrupt = nullptr;
  return std::move(*run(candidate, std::move(options)).schedule);
}

EngineResult EngineRunner::rerun_folded(const Candidate& candidate) {
  EngineOptions options = options_;
  options.limits.interrupt = nullptr;
  options.fold = true;
  return run(candidate, std::move(options));
}

std::vector<std::size_t> EngineRunner::kin_of(const std::vector<Candidate>& batch) const {
  std::map<std::tuple<std::size_t, int, std::uint64_t, std::string>, std::size_t> number_of;
  std::vector<std::size_t> kin;
  for (const Candidate& c : batch) {
    const auto& begins_with = engine_of(c).begins_with;
    const std::string beginning = begins_with ? begins_with(c.policy) : c.policy;
    kin.push_back(
        number_of.try_emplace({c.engine, c.chunks, c.seed, beginning}, number_of.size()).first->second);
  }
  return kin;
}

std::string EngineRunner::label(const Candidate& candidate) const {
  const EngineInfo& engine = engine_of(candidate);
  return engine.name + (candidate.policy.empty() ? "" : "/" + candidate.policy) +
         (engine.policies.empty() ? "" : fmt::format("/{}", candidate.seed));
}

}  // namespace rondo
