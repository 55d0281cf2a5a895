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
#include "mirrored_sums.hpp"
#include "rondo/pipeline/halves.hpp"

namespace rondo {
namespace {

/// Of the time that is left, for what spreads: of halves, and of groups, of which several are tried. Sums
/// take more.
constexpr double kShareOfSpreading = 0.3;
constexpr double kShareOfGroups = 0.1;
constexpr double kGatheringOverSpreading = 1.5;
/// Of schedules in groups.
constexpr int kMostSlices = 64;
/// What is left of local search: in an order of their own parts overlap, and none has to end early as a
/// whole.
constexpr double kShareOfImprovement = 0.4;
/// Of halves that overlap.
constexpr double kMostTransfersOfHalves = 7e4;
constexpr int kLeastChunksOfHalves = 8;

/// The problem of a half; whole numbers of chunks a part only.
std::optional<Problem> half(const Problem& problem, const Demand& demand, int parts, double share,
                            const RunContext& context) {
  Problem half{problem.topology, demand, problem.options, nullptr, problem.sketch};
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

/// What a schedule of sums for several is made of, and how.
struct Parts {
  Demand gathering;
  Demand spreading;
  int number = 0;    ///< of a contribution
  std::string name;  ///< before the engines' names
  double share = 0;  ///< of the time that is left, for what spreads
  /// In so many chunks a part, from the sends of the sums and what spreads them; nothing where that does not
  /// work.
  std::function<std::optional<GroupedSchedule>(int chunks, std::vector<Send> sums,
                                               const ProvenSchedule& spread)>
      join = nullptr;
};

/// Collective.
std::optional<Incumbent> solve_in_parts(const Problem& problem, const Parts& parts,
                                        const RunContext& context) {
  const auto spreading = half(problem, parts.spreading, parts.number, parts.share, context);
  if (!spreading) return std::nullopt;
  const SynthesisResult spread = [&] {
    const Checkpoints::Prefix names(context.checkpoints(), "spreading-");
    return synthesize(*spreading, context);
  }();
  const int chunks = spread.proven.demand.chunks_per_contribution();

  Incumbent best{.engine = parts.name + "/" + spread.engine, .seed = spread.seed};
  best.found.metrics = spread.metrics;
  best.found.limits_hit = spread.limits_hit;
  std::optional<std::vector<Send>> sums =
      mirrored(*problem.topology, parts.gathering.with_chunks(chunks), spread.proven);
  if (!sums) {
    auto gathering =
        *half(problem, parts.gathering, parts.number, kGatheringOverSpreading * parts.share, context);
    gathering.options.chunks = chunks;
    const Checkpoints::Prefix names(context.checkpoints(), "gathering-");
    SynthesisResult gathered = synthesize(gathering, context);
    best.engine += "+" + gathered.engine;
    std::ranges::copy(gathered.limits_hit, std::back_inserter(best.found.limits_hit));
    sums = std::move(gathered.proven.schedule.sends);
  }
  auto joined = parts.join(chunks, *std::move(sums), spread.proven);
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
  const auto join = [&](int chunks, std::vector<Send> sums, const ProvenSchedule& spread) {
    const int all = chunks * halves->parts;
    return GroupedSchedule{one_after_the_other(*problem.topology, problem.demand.with_chunks(all),
                                               std::move(sums), spread, "two halves"),
                           all};
  };
  Problem few = problem;
  if (overlap) {
    few.options.improve_work *= kShareOfImprovement;
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
  const auto join = [&](int chunks, std::vector<Send> sums, const ProvenSchedule& spread) {
    return in_groups(*problem.topology, problem.demand, grouping, chunks, slices, problem.options.concurrency,
                     std::move(sums), spread.schedule.sends);
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
