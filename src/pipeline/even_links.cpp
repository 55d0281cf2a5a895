#include "even_links.hpp"

#include <memory>
#include <utility>

#include "both_ways.hpp"
#include "explore.hpp"
#include "links_of_groups.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/even_links.hpp"
#include "rondo/core/stopwatch.hpp"
#include "shared_bounds.hpp"
#include "time_shares.hpp"

namespace rondo {
namespace {

constexpr const char* kWholePrefix = "whole-links-";
/// Of even links. Where their bound is hardly later than that of the links as they are, less is not worth a
/// second search on these.
constexpr double kNearOfEven = 0.02;
constexpr double kHardlyLater = 1e-3;

}  // namespace

std::optional<Problem> on_even_links(const Problem& problem) {
  // AllReduce is done in halves, each of which comes here.
  const bool is_free = problem.options.engine == "auto" && !problem.start && !problem.sketch &&
                       problem.demand.kind() != DemandKind::all_reduction;
  std::optional<Topology> topology = is_free ? with_even_links(*problem.topology) : std::nullopt;
  if (!topology) return std::nullopt;
  Problem even = problem;
  even.topology = std::make_shared<const Topology>(*std::move(topology));
  even.bounds = nullptr;
  even.known_bound = nullptr;
  return even;
}

SynthesisResult solve_on_even_links(const Problem& problem, const Problem& even, const RunContext& context,
                                    const std::function<SynthesisResult(const Problem&)>& solve) {
  const Stopwatch clock;
  const Toolbox tools = prepare_toolbox(problem.options, context);
  const auto bounds_of = [&](const Problem& one) {
    return std::make_shared<const Bounds>(shared_bounds(one, tools, context));
  };
  Problem whole = problem;
  if (!whole.bounds) whole.bounds = bounds_of(whole);
  Problem first = even;
  first.bounds = bounds_of(first);
  const double bounds_s = clock.seconds();
  const auto timed = [&](SynthesisResult result) {
    result.wall_parts_s["bounds"] += bounds_s;
    return result;
  };
  const double later = first.bounds->best().us / whole.bounds->best().us - 1;
  if (!is_near(later, problem.options)) return timed(solve(whole));
  first.options.time_limit_s = time_limit_of_part(problem.options, context, 2);
  SynthesisResult found = on_whole_links(whole, solve(first), context);
  found.remarks.emplace_back("found on links slowed down to rates that fill wider ones");
  const double enough = problem.options.gap.value_or(later <= kHardlyLater ? kNearOfEven : kHardlyLater);
  if (found.gap <= enough || context.interrupted()) return timed(std::move(found));
  const Checkpoints::Prefix names(context.checkpoints(), kWholePrefix);
  try {
    SynthesisResult other = solve(whole);
    if (other.proven.schedule.finish_us < found.proven.schedule.finish_us) std::swap(found, other);
    add_what_was_done(found, other);
  } catch (const Error& error) {
    if (error.code() != ExitCode::internal) throw;
    found.remarks.push_back(left_out(error));
  }
  found.wall_parts_s["checkpoints"] = context.checkpoints().seconds();
  return timed(std::move(found));
}

}  // namespace rondo
