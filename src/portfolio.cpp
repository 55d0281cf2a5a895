#include "portfolio.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <ranges>
#include <set>

namespace rondo {
namespace {

constexpr int kMostChunks = 128;
constexpr double kMostSends = 4e5;
/// What improvement may split into: executors have to keep up.
constexpr double kMostChunksOfImprovement = 2 * kMostChunks;
/// Deliveries of a schedule made anew in more chunks.
constexpr double kMostFreshDeliveries = 1.1e6;
/// Of the (policy, seed) pairs known, those that are tried in more chunks; and of the policies, those that
/// further seeds are tried with.
constexpr std::size_t kKnownVariants = 4;
constexpr std::size_t kFreshPolicies = 4;
constexpr std::size_t kConfigurations = 4;  ///< (engine, chunks) pairs that a later round varies

/// Beyond it, multicast is given fewer policies rather than fewer chunk counts: chunks matter more.
constexpr double kLargeDeliveries = 5e4;
/// Pairwise demand beyond it is tried in batches of so many candidates: one that meets the gap ends the
/// search.
constexpr std::size_t kLargeBatch = 2;

/// Those of `engine`, the e-th one: the best ones first where all have been tried in as many chunks.
std::vector<std::string> ranked_policies(const EngineInfo& engine, std::size_t e,
                                         const std::vector<Trial>& trials) {
  std::map<int, std::map<std::string, double>> finish_us;  // per number of chunks
  for (const Trial& trial : trials) {
    if (trial.candidate.engine != e) continue;
    double& best =
        finish_us[trial.candidate.chunks].try_emplace(trial.candidate.policy, kInfinity).first->second;
    best = std::min(best, trial.finish_us);
  }
  std::vector<std::string> policies = engine.policies;
  for (const auto& [chunks, known] : std::views::reverse(finish_us)) {
    if (known.size() < policies.size()) continue;
    std::ranges::stable_sort(policies, {}, [&](const std::string& policy) { return known.at(policy); });
    break;
  }
  return policies;
}

std::vector<std::string> policies_of(const std::vector<EngineInfo>& engines, std::size_t e,
                                     const Demand& demand, const SolveOptions& options,
                                     const std::vector<Trial>& trials) {
  const EngineInfo& engine = engines[e];
  if (!options.policy.empty()) return {options.policy};
  if (engine.policies.empty()) return {""};
  const bool large = demand.num_deliveries() > kLargeDeliveries && !demand.is_pairwise();
  if (!large || options.engine != "auto") return engine.policies;
  std::vector<std::string> policies = ranked_policies(engine, e, trials);
  const auto affordable = static_cast<std::size_t>(kWorkBudget / 8 / engine.work(demand, policies.front()));
  policies.resize(std::clamp<std::size_t>(affordable, 1, policies.size()));
  return policies;
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
                                                  const Demand& demand, const SolveOptions& options,
                                                  const std::vector<Trial>& trials) {
  std::vector<std::vector<Candidate>> batches;
  double work = 0;
  for (const int chunks : chunk_counts(demand, options)) {
    if (work >= kWorkBudget / 2) break;
    const Demand split = demand.with_chunks(chunks);
    batches.emplace_back();
    for (std::size_t e = 0; e < engines.size(); ++e) {
      for (const std::string& policy : policies_of(engines, e, split, options, trials)) {
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
    for (const std::string& policy : policies_of(engines, engine, split, options, trials)) {
      const std::uint64_t seed = options.seed + static_cast<std::uint64_t>(round);
      batch.push_back({engine, chunks, policy, seed, engines[engine].work(split, policy)});
      work += batch.back().work;
    }
  }
  return batch;
}

std::vector<int> fresh_counts(const Demand& demand, const SolveOptions& options,
                              const std::vector<Trial>& trials, const std::function<double(int)>& least_us) {
  const Trial* best = nullptr;
  for (const Trial& trial : trials) {
    if (trial.improvable && (!best || trial.finish_us < best->finish_us)) best = &trial;
  }
  const int most = std::min(most_chunks_of_improvement(demand, options),
                            static_cast<int>(std::min(kMostFreshDeliveries / demand.num_deliveries(), 1e6)));
  // What one chunk more takes on the busiest link, in chunks of the whole contribution.
  const double spare_us =
      best->finish_us / static_cast<double>(best->most_sends_on_a_link) * best->candidate.chunks;
  std::vector<int> counts;
  for (int below = best->candidate.chunks; below < most; below = std::min(2 * below, most)) {
    double least = kInfinity;
    int chosen = 0;
    for (int chunks = below + 1; chunks <= std::min(2 * below, most); ++chunks) {
      const double expected_us = least_us(chunks) + spare_us / chunks;
      if (expected_us >= least) continue;
      least = expected_us;
      chosen = chunks;
    }
    if (least < best->finish_us) counts.push_back(chosen);
  }
  return counts;
}

Candidate fresh_candidate(const std::vector<EngineInfo>& engines, const Demand& demand,
                          const SolveOptions& options, const std::vector<Trial>& trials, int chunks,
                          std::size_t variant) {
  const Demand split = demand.with_chunks(chunks);
  Candidate candidate{0, chunks, {}, options.seed, kInfinity};
  for (std::size_t e = 0; e < engines.size(); ++e) {
    const double work = engines[e].work(split, options.policy);
    if (!engines[e].is_improved || work >= candidate.work) continue;
    candidate.engine = e;
    candidate.work = work;
  }
  // What did well in fewer chunks does so in more.
  std::map<std::pair<std::string, std::uint64_t>, double> known;
  std::uint64_t next_seed = options.seed;
  for (const Trial& trial : trials) {
    const Candidate& c = trial.candidate;
    if (c.engine != candidate.engine || !std::isfinite(trial.finish_us)) continue;
    double& best = known.try_emplace({c.policy, c.seed}, kInfinity).first->second;
    best = std::min(best, trial.finish_us);
    next_seed = std::max(next_seed, c.seed + 1);
  }
  std::vector<std::pair<double, std::pair<std::string, std::uint64_t>>> ranked;
  for (const auto& [which, finish_us] : known) ranked.emplace_back(finish_us, which);
  std::ranges::sort(ranked);
  ranked.resize(std::min(ranked.size(), kKnownVariants));
  if (variant < ranked.size()) {
    std::tie(candidate.policy, candidate.seed) = ranked[variant].second;
    return candidate;
  }
  std::vector<std::string> policies = ranked_policies(engines[candidate.engine], candidate.engine, trials);
  if (!options.policy.empty()) policies = {options.policy};
  policies.resize(std::min(policies.size(), kFreshPolicies));
  const std::size_t further = variant - ranked.size();
  candidate.policy = policies[further % policies.size()];
  candidate.seed = next_seed + further / policies.size();
  return candidate;
}

}  // namespace rondo
