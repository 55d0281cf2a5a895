#include "sums_in_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "chunk_counts.hpp"
#include "grouped_sums.hpp"
#include "in_turn.hpp"
#include "mirrored_sums.hpp"
#include "rondo/core/transfers.hpp"
#include "rondo/pipeline/halves.hpp"

namespace rondo {
namespace {

/// Of the time that is left, for what spreads: of halves, and of groups, of which several are tried. Sums
/// take more.
constexpr double kShareOfSpreading = 0.3;
constexpr double kShareOfGroups = 0.1;
constexpr double kGatheringOverSpreading = 1.5;
/// Halves of fewer deliveries than this are searched in numbers of chunks that meet. Of more, the gap that
/// leaves nothing of weight to further search; and where latencies do, by which halves overlap.
constexpr double kManyDeliveries = 1e4;
constexpr double kNearInMany = 5e-4;
constexpr double kNearWithLatency = 3e-3;
/// Of schedules in groups.
constexpr int kMostSlices = 64;
/// What is left of local search: in an order of their own parts overlap, and none has to end early as a
/// whole.
constexpr double kShareOfImprovement = 0.4;
/// Of list scheduling, where parts overlap.
constexpr double kShareOfListing = 0.5;
/// Of halves that overlap.
constexpr double kMostTransfersOfHalves = 7e4;
constexpr int kLeastChunksOfHalves = 8;

/// The problem of a half; whole numbers of chunks a part only.
std::optional<Problem> half(const Problem& problem, const Demand& demand, int parts, double share,
                            const RunContext& context) {
  Problem half{problem.topology, demand, problem.options, nullptr, problem.sketch};
  half.list_share = problem.list_share;
  half.is_part = true;
  SolveOptions& options = half.options;
  if (options.chunks % parts != 0) return std::nullopt;
  options.chunks /= parts;
  options.steps /= 2;
  options.step_rounds /= 2;
  if (options.time_limit_s) {
    const double now_s = context.seconds();
    options.time_limit_s = now_s + share * std::max(0.0, *options.time_limit_s - now_s);
  }
  return half;
}

/// As many chunks a part as leave room for an order of their own, unless these are few.
void limit_chunks(const Halves& halves, SolveOptions& options) {
  const double each = 2 * halves.spreading.num_deliveries();
  const auto most = static_cast<int>(std::bit_floor(static_cast<unsigned>(kMostTransfersOfHalves / each)));
  if (options.chunks > 0 || most < kLeastChunksOfHalves ||
      most >= most_chunks_of_improvement(halves.spreading, options))
    return;
  options.min_chunk_bytes =
      std::ranges::min(halves.spreading.contributions(), {}, &Contribution::bytes).bytes / most;
}

/// Of a schedule of sums for several, in as many chunks.
struct BothParts {
  ProvenSchedule spread;
  std::vector<Send> sums = {};

  int chunks() const { return spread.demand.chunks_per_contribution(); }
};

/// What such a schedule is made of, and how.
struct Parts {
  Demand gathering;
  Demand spreading;
  int number = 0;    ///< of a contribution
  std::string name;  ///< before the engines' names
  double share = 0;  ///< of the time that is left, for what spreads
  /// Nothing where that does not work.
  std::function<std::optional<GroupedSchedule>(BothParts both)> join = nullptr;
};

/// In few more chunks than they have; nothing where these do not meet.
std::optional<BothParts> in_common_chunks(const Parts& parts, const ProvenSchedule& sums,
                                          ProvenSchedule spread) {
  const int of_sums = sums.demand.chunks_per_contribution();
  const int of_spread = spread.demand.chunks_per_contribution();
  const int common = common_chunks(spread.topology, of_sums, of_spread, 2 * parts.spreading.num_deliveries());
  if (common == 0) return std::nullopt;
  return BothParts{cut_into(std::move(spread), parts.spreading, common),
                   cut_into(sums, parts.gathering, common).schedule.sends};
}

/// Whether sums choose their number of chunks: where those of what spreads are many, in which all policies
/// take long, and others meet them. More messages would cost more.
bool choose_their_chunks(const Problem& problem, const Demand& spreading, int chunks) {
  return problem.options.chunks == 0 && !problem.topology->has_message_costs() &&
         std::has_single_bit(static_cast<unsigned>(chunks)) &&
         2 * chunks >= most_chunks_of_improvement(spreading, problem.options);
}

/// Collective.
BothParts with_sums(const Problem& problem, const Parts& parts, ProvenSchedule spread, Incumbent& best,
                    const RunContext& context) {
  const auto solve = [&](int chunks, const char* prefix) {
    Problem gathering =
        *half(problem, parts.gathering, parts.number, kGatheringOverSpreading * parts.share, context);
    gathering.options.chunks = chunks;
    const Checkpoints::Prefix names(context.checkpoints(), prefix);
    return synthesize(gathering, context);
  };
  const auto take = [&](const SynthesisResult& found) {
    best.engine += "+" + found.engine;
    std::ranges::copy(found.limits_hit, std::back_inserter(best.found.limits_hit));
  };
  if (choose_their_chunks(problem, parts.spreading, spread.demand.chunks_per_contribution())) {
    const SynthesisResult found = solve(0, "gathering-");
    if (auto both = in_common_chunks(parts, found.proven, spread)) {
      take(found);
      return *std::move(both);
    }
  }
  SynthesisResult found = solve(spread.demand.chunks_per_contribution(), "gathering-alike-");
  take(found);
  return {std::move(spread), std::move(found.proven.schedule.sends)};
}

/// Collective.
std::optional<Incumbent> solve_in_parts(const Problem& problem, const Parts& parts,
                                        const RunContext& context) {
  const auto spreading = half(problem, parts.spreading, parts.number, parts.share, context);
  if (!spreading) return std::nullopt;
  SynthesisResult spread = [&] {
    const Checkpoints::Prefix names(context.checkpoints(), "spreading-");
    return synthesize(*spreading, context);
  }();
  Incumbent best{.engine = parts.name + "/" + spread.engine, .seed = spread.seed};
  best.found.metrics = spread.metrics;
  best.found.limits_hit = spread.limits_hit;

  const int chunks = spread.proven.demand.chunks_per_contribution();
  BothParts both{std::move(spread.proven)};
  if (auto sums = mirrored(*problem.topology, parts.gathering.with_chunks(chunks), both.spread)) {
    both.sums = *std::move(sums);
  } else {
    both = with_sums(problem, parts, std::move(both.spread), best, context);
  }
  auto joined = parts.join(std::move(both));
  if (!joined) return std::nullopt;
  best.found.schedule = std::move(joined->schedule);
  best.chunks = joined->chunks;
  best.is_replayed = true;
  return best;
}

}  // namespace

std::optional<Incumbent> solve_in_halves(const Problem& problem, bool overlap, const RunContext& context) {
  const std::optional<Halves> halves = halves_of(problem.demand);
  if (!halves) return std::nullopt;
  const auto join = [&](BothParts both) {
    const int all = both.chunks() * halves->parts;
    return GroupedSchedule{one_after_the_other(*problem.topology, problem.demand.with_chunks(all),
                                               std::move(both.sums), both.spread, "two halves"),
                           all};
  };
  Problem few = problem;
  const bool are_many = halves->spreading.num_deliveries() > kManyDeliveries;
  few.options.only_powers_of_two = !are_many;
  if (are_many && !problem.options.has_gap_to_meet())
    few.options.enough_gap = overlap ? kNearWithLatency : kNearInMany;
  if (overlap) {
    few.options.improve_work *= kShareOfImprovement;
    few.list_share = kShareOfListing;
    limit_chunks(*halves, few.options);
  }
  return solve_in_parts(
      few, {halves->gathering, halves->spreading, halves->parts, "halves", kShareOfSpreading, join}, context);
}

std::optional<Incumbent> solve_in_groups(const Problem& problem, const Grouping& grouping, bool in_any,
                                         const RunContext& context) {
  const int parts = grouping.num_parts();
  Problem few = problem;
  int slices = 1;
  if (problem.options.chunks == 0) {
    if (!in_any) few.options.chunks = parts * grouping.chunks;
    slices = std::min(
        kMostSlices, most_chunks_of_improvement(problem.demand, problem.options) / (parts * grouping.chunks));
  }
  few.options.improve_work *= kShareOfImprovement;
  few.options.only_powers_of_two = true;
  const auto join = [&](BothParts both) {
    return in_groups(*problem.topology, problem.demand, grouping, both.chunks(), slices,
                     problem.options.concurrency, std::move(both.sums),
                     std::move(both.spread.schedule.sends));
  };
  const Checkpoints::Prefix names(context.checkpoints(),
                                  fmt::format("groups-{}-{}-{}{}-", grouping.groups.size(), parts,
                                              in_any ? "any" : "one", grouping.tells ? "-told" : ""));
  return solve_in_parts(few,
                        {gathering(problem.demand, grouping), spreading(problem.demand, grouping), parts,
                         "groups", kShareOfGroups, join},
                        context);
}

}  // namespace rondo
