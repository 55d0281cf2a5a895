#include "both_ways.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "combining.hpp"
#include "explore.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/relay_memory.hpp"
#include "rondo/core/transposition.hpp"
#include "time_shares.hpp"

namespace rondo {
namespace {

/// A gap that is worth a second search.
constexpr double kNearBothWays = 5e-3;
constexpr const char* kTurnedPrefix = "backwards-";

bool is_rooted(const Demand& demand) {
  const auto& all = demand.contributions();
  const auto same = [&](const auto& gpu_of) {
    return std::ranges::all_of(all, [&](const Contribution& c) { return gpu_of(c) == gpu_of(all.front()); });
  };
  return same([](const Contribution& c) { return c.origin; }) ||
         same([](const Contribution& c) { return c.destinations.front(); });
}

}  // namespace

bool is_near(double gap, const SolveOptions& options) {
  return gap <= options.gap.value_or(kNearBothWays);
}

void add_what_was_done(SynthesisResult& kept, SynthesisResult& other) {
  std::ranges::move(other.candidates, std::back_inserter(kept.candidates));
  for (const std::string& limit : other.limits_hit) {
    if (std::ranges::find(kept.limits_hit, limit) == kept.limits_hit.end()) kept.limits_hit.push_back(limit);
  }
  for (const auto& [step, seconds] : other.wall_parts_s) kept.wall_parts_s[step] += seconds;
}

bool may_be_turned(const Problem& problem) {
  const Topology& topology = *problem.topology;
  const Demand& demand = problem.demand;
  const bool is_free = problem.options.engine == "auto" && !problem.start && !problem.sketch;
  return is_free && demand.kind() != DemandKind::reduction && demand.is_unicast() &&
         demand.contributions().size() > 1 && is_rooted(demand) && is_transposable(topology, demand) &&
         !has_limited_relays(topology, demand);
}

SynthesisResult solve_both_ways(const Problem& problem, const RunContext& context,
                                const std::function<SynthesisResult(const Problem&)>& solve) {
  Problem first = problem;
  first.options.time_limit_s = time_limit_of_part(problem.options, context, 2);
  SynthesisResult found = solve(first);
  if (is_near(found.gap, problem.options) || context.interrupted()) return found;
  const Checkpoints::Prefix names(context.checkpoints(), kTurnedPrefix);
  std::optional<SynthesisResult> backwards;
  try {
    backwards = reversed_in_time(problem, solve(transposed(problem)));
  } catch (const Error& error) {
    if (error.code() != ExitCode::internal) throw;
    found.remarks.push_back(left_out(error));
    return found;
  }
  SynthesisResult& turned = *backwards;
  // One bound for both: that of the problem as it was asked for.
  const LowerBound bound = *found.proven.lower_bound;
  turned.proven.lower_bound = bound;
  turned.gap = turned.proven.schedule.finish_us / bound.us - 1;
  const bool is_better = turned.proven.schedule.finish_us < found.proven.schedule.finish_us;
  if (is_better) {
    std::swap(found, turned);
    found.remarks.emplace_back("found on the transposed topology and run backwards");
  }
  add_what_was_done(found, turned);
  found.wall_parts_s["checkpoints"] = context.checkpoints().seconds();
  return found;
}

}  // namespace rondo
