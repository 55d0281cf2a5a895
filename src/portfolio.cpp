#include "portfolio.hpp"

#include <algorithm>
#include <cmath>

namespace rondo {
namespace {

constexpr int kMostChunks = 128;
constexpr double kMostSends = 4e5;
/// What improvement may split into: executors have to keep up.
constexpr double kMostChunksOfImprovement = 2 * kMostChunks;
constexpr std::size_t kConfigurations = 4;  ///< (engine, chunks) pairs that a later round varies

/// Large multicast problems are given fewer policies rather than fewer chunk counts: chunks matter more.
constexpr double kLargeDeliveries = 5e4;
/// Pairwise demand beyond it is tried in batches of so many candidates: one that meets the gap ends the
/// search.
constexpr std::size_t kLargeBatch = 2;

std::vector<std::string> policies_of(const EngineInfo& engine, const Demand& demand,
                                     const SolveOptions& options) {
  if (!options.policy.empty()) return {options.policy};
  if (engine.policies.empty()) return {""};
  const bool large = demand.num_deliveries() > kLargeDeliveries && !demand.is_pairwise();
  if (!large || options.engine != "auto") return engine.policies;
  const auto affordable =
      static_cast<std::size_t>(kWorkBudget / 8 / engine.work(demand, engine.policies.front()));
  const std::size_t count = std::clamp<std::size_t>(affordable, 1, engine.policies.size());
  return {engine.policies.begin(), engine.policies.begin() + static_cast<std::ptrdiff_t>(count)};
}

}  // namespace

int most_chunks_of_improvement(const Demand& demand, const SolveOptions& options) {
  if (options.chunks > 0) return options.chunks;
  double smallest = demand.contributions().front().bytes;
  for (const Contribution& c : demand.contributions()) smallest = std::min(smallest, c.bytes);
  return static_cast<int>(
      std::clamp(std::floor(smallest / options.min_chunk_bytes), 1.0, kMostChunksOfImprovement));
}

std::vector<int> chunk_counts(const Demand& demand, const SolveOptions& options) {
  if (options.chunks > 0) return {options.chunks};
  const double most = std::min({static_cast<double>(kMostChunks),
                                static_cast<double>(most_chunks_of_improvement(demand, options)),
                                std::floor(kMostSends / demand.num_deliveries())});
  std::vector<int> counts{1};
  for (int c = 2; c <= most; c *= 2) counts.push_back(c);
  if (most > counts.back()) counts.push_back(static_cast<int>(most));
  return counts;
}

std::vector<std::vector<Candidate>> first_batches(const std::vector<EngineInfo>& engines,
                                                  const Demand& demand, const SolveOptions& options) {
  std::vector<std::vector<Candidate>> batches;
  double work = 0;
  for (const int chunks : chunk_counts(demand, options)) {
    if (work >= kWorkBudget / 2) break;
    const Demand split = demand.with_chunks(chunks);
    batches.emplace_back();
    for (std::size_t e = 0; e < engines.size(); ++e) {
      for (const std::string& policy : policies_of(engines[e], demand, options)) {
        const bool large = demand.is_pairwise() && demand.num_deliveries() > kLargeDeliveries;
        if (large && batches.back().size() == kLargeBatch) batches.emplace_back();
        batches.back().push_back({e, chunks, policy, options.seed, engines[e].work(split, policy)});
        work += batches.back().back().work;
      }
    }
  }
  return batches;
}

std::vector<Candidate> next_batch(const std::vector<EngineInfo>& engines, const Demand& demand,
                                  const SolveOptions& options, const std::vector<Trial>& trials, int round) {
  // The best (engine, chunks) pairs so far; trials come in a fixed order, so that ties are settled alike
  // everywhere.
  std::vector<Trial> ranked = trials;
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const Trial& a, const Trial& b) { return a.finish_us < b.finish_us; });
  std::vector<std::pair<std::size_t, int>> chosen;
  for (const Trial& trial : ranked) {
    const std::pair<std::size_t, int> pair{trial.candidate.engine, trial.candidate.chunks};
    if (!std::isfinite(trial.finish_us) || chosen.size() == kConfigurations) break;
    const bool varies = !engines[pair.first].policies.empty();
    if (varies && std::find(chosen.begin(), chosen.end(), pair) == chosen.end()) chosen.push_back(pair);
  }

  std::vector<Candidate> batch;
  double work = 0;
  if (!chosen.empty()) {
    // The best once more in more chunks than were affordable for all: often what is left of the gap is the
    // time of one chunk.
    Candidate finer = ranked.front().candidate;
    for (const int chunks : chunk_counts(demand, options)) {
      const bool tried =
          std::ranges::any_of(trials, [&](const Trial& t) { return t.candidate.chunks >= chunks; });
      if (tried) continue;
      finer.chunks = chunks;
      finer.work = engines[finer.engine].work(demand.with_chunks(chunks), finer.policy);
      if (finer.work > kWorkBudget / 4) break;
      batch.push_back(finer);
      work += finer.work;
      break;
    }
  }
  for (const auto& [engine, chunks] : chosen) {
    if (work >= kWorkBudget / 4) break;
    const Demand split = demand.with_chunks(chunks);
    for (const std::string& policy : policies_of(engines[engine], demand, options)) {
      const std::uint64_t seed = options.seed + static_cast<std::uint64_t>(round);
      batch.push_back({engine, chunks, policy, seed, engines[engine].work(split, policy)});
      work += batch.back().work;
    }
  }
  return batch;
}

}  // namespace rondo
