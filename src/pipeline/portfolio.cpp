#include "portfolio.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <map>
#include <tuple>

#include "chunk_counts.hpp"
#include "more_chunks.hpp"

namespace rondo {
namespace {

/// Deliveries of a schedule made anew in more chunks.
constexpr double kMostRestartDeliveries = 1.1e6;
/// Of the (policy, seed) pairs known, those that are tried in more chunks; and of the policies, those that
/// further seeds are tried with.
constexpr std::size_t kKnownVariants = 4;
constexpr std::size_t kRestartPolicies = 2;
constexpr double kMuchNearer = 0.6;         ///< to the bound
constexpr std::size_t kConfigurations = 4;  ///< (engine, chunks) pairs that a later round varies

/// Beyond it, multicast is given fewer policies rather than fewer chunk counts: chunks matter more.
constexpr double kLargeDeliveries = 5e4;
/// Unicast demand beyond it is tried in batches of so many candidates: one that meets the gap ends the
/// search.
constexpr std::size_t kLargeBatch = 2;
/// After a kept schedule: of an engine in one number of chunks, unless one policy is more; and of all
/// policies in few chunks, by which those for more are chosen.
constexpr double kWorkAfterKept = 6e4;
constexpr double kWorkOfScouts = 2e5;
/// Rerouting a send takes so many times as long as list scheduling one.
constexpr double kReroutingOverListing = 4;

/// Those of `engine`, the e-th one: those that have come to the most chunks first, of them the best there.
/// What a time limit cut short counts for nothing.
std::vector<std::string> ranked_policies(const EngineInfo& engine, std::size_t e,
                                         const std::vector<Trial>& trials) {
  std::map<std::string, std::pair<int, double>> snapshot;  // -chunks, finish: the least is best
  for (const Trial& trial : trials) {
    if (trial.candidate.engine != e || !std::isfinite(trial.finish_us)) continue;
    const std::pair here(-trial.candidate.chunks, trial.finish_us);
    const auto known = snapshot.try_emplace(trial.candidate.policy, here).first;
    known->second = std::min(known->second, here);
  }
  std::vector<std::string> policies = engine.policies;
  std::ranges::stable_sort(policies, {}, [&](const std::string& policy) {
    const auto known = snapshot.find(policy);
    return known == snapshot.end() ? std::pair(0, kInfinity) : known->second;
  });
  return policies;
}

std::vector<std::string> policies_of(const std::vector<EngineInfo>& engines, std::size_t e,
                                     const Demand& demand, const SolveOptions& options,
                                     const std::vector<Trial>& trials) {
  const EngineInfo& engine = engines[e];
  if (!options.policy.empty()) return {options.policy};
  if (engine.policies.empty()) return {""};
  const bool large = demand.num_deliveries() > kLargeDeliveries && !demand.is_unicast();
  std::vector<std::string> policies = engine.policies;
  if (large && options.engine == "auto") {
    policies = ranked_policies(engine, e, trials);
    const auto affordable = static_cast<std::size_t>(kWorkBudget / 8 / engine.work(demand, policies.front()));
    // Which policy fills its links best often shows late.
    if (!engine.most_pipelined) policies.resize(std::clamp<std::size_t>(affordable, 1, policies.size()));
  }
  if (!engine.most_sends && !engine.most_pipelined) return policies;
  std::vector<std::string> hopeful = policies;
  std::erase_if(hopeful, [&](const std::string& policy) { return stays_behind(policy, e, trials); });
  return hopeful.empty() ? policies : hopeful;
}

/// The engine that settles the number of chunks; null where none does.
const EngineInfo* engine_of_kept(const std::vector<EngineInfo>& engines) {
  const auto found = std::ranges::find_if(engines, [](const EngineInfo& e) { return e.only_chunks > 0; });
  return found == engines.end() ? nullptr : &*found;
}

/// The greatest of `counts` in which all policies together are affordable; 0 where none is.
int count_of_scouts(const EngineInfo& engine, const Demand& demand, const std::vector<int>& counts) {
  int most = 0;
  for (const int chunks : counts) {
    const double each = engine.work(demand.with_chunks(chunks), engine.policies.front());
    if (each * static_cast<double>(engine.policies.size()) <= kWorkOfScouts) most = chunks;
  }
  return most;
}

/// Beside others, which it goes before.
bool goes_before(const EngineInfo& engine, const std::vector<EngineInfo>& engines) {
  return engine.is_quick && engines.size() > 1;
}

/// Of the engines that are quick, all at once; of a part, where the schedule of another part follows and many
/// chunks let them overlap, in the most chunks first. Of other counts than powers of two those alone that the
/// engine found.
std::vector<std::vector<Candidate>> quick_batches(const std::vector<EngineInfo>& engines,
                                                  const Demand& demand, const SolveOptions& options,
                                                  bool is_part) {
  std::vector<std::vector<Candidate>> batches;
  for (std::size_t e = 0; e < engines.size(); ++e) {
    if (!goes_before(engines[e], engines)) continue;
    std::vector<int> counts = chunk_counts_of(engines[e], demand, options);
    if (is_part) std::ranges::reverse(counts);
    for (const int chunks : counts) {
      const bool is_power = std::has_single_bit(static_cast<unsigned>(chunks));
      if (options.chunks == 0 && !is_power && !std::ranges::binary_search(engines[e].found_counts, chunks))
        continue;
      if (batches.empty() || is_part) batches.emplace_back();
      batches.back().push_back(
          {e, chunks, "", options.seed, engines[e].work(demand.with_chunks(chunks), "")});
    }
  }
  return batches;
}

/// Of the engines that make schedules from nothing.
std::vector<std::vector<Candidate>> batches_anew(const std::vector<EngineInfo>& engines, const Demand& demand,
                                                 const SolveOptions& options,
                                                 const std::vector<Trial>& trials, double budget,
                                                 bool is_part) {
  std::vector<std::vector<Candidate>> batches = quick_batches(engines, demand, options, is_part);
  double work = 0;
  std::vector<std::vector<int>> counts;
  std::size_t most_counts = 0;
  for (const EngineInfo& engine : engines) {
    counts.push_back(chunk_counts_of(engine, demand, options));
    most_counts = std::max(most_counts, counts.back().size());
  }
  for (std::size_t i = 0; i < most_counts && work < budget / 2; ++i) {
    batches.emplace_back();
    for (std::size_t e = 0; e < engines.size(); ++e) {
      if (i >= counts[e].size() || engines[e].only_chunks > 0 || goes_before(engines[e], engines)) continue;
      const int chunks = counts[e][i];
      const Demand split = demand.with_chunks(chunks);
      for (const std::string& policy : policies_of(engines, e, split, options, trials)) {
        const bool large = demand.is_unicast() && demand.num_deliveries() > kLargeDeliveries;
        if (large && was_behind(policy, e, chunks, trials)) continue;
        if (large && batches.back().size() == kLargeBatch) batches.emplace_back();
        batches.back().push_back({e, chunks, policy, options.seed, engines[e].work(split, policy)});
        work += batches.back().back().work;
      }
    }
  }
  if (!demand.is_unicast() || options.chunks > 0) return batches;
  // Where pairs share links by thirds, whole chunks fill them in such numbers alone.
  const int most = chunk_counts(demand, options).back();
  for (int chunks = 3; chunks <= most && work < budget / 2; chunks *= 2) {
    const Demand split = demand.with_chunks(chunks);
    batches.emplace_back();
    for (std::size_t e = 0; e < engines.size(); ++e) {
      if (engines[e].pieces || engines[e].only_chunks > 0) continue;
      const std::vector<std::string> ranked = ranked_policies(engines[e], e, trials);
      const std::string policy = !options.policy.empty() ? options.policy
                                 : ranked.empty()        ? ""
                                                         : ranked.front();
      batches.back().push_back({e, chunks, policy, options.seed, engines[e].work(split, policy)});
      work += batches.back().back().work;
    }
  }
  return batches;
}

/// Of `batches`, those that come before more than so much work, together.
std::vector<std::vector<Candidate>>::iterator end_of_work(std::vector<std::vector<Candidate>>& batches,
                                                          double most) {
  double work = 0;
  return std::ranges::find_if(batches, [&](const std::vector<Candidate>& batch) {
    for (const Candidate& candidate : batch) work += candidate.work;
    return work > most;
  });
}

/// What becomes of the kept schedule as it is; then all engines, every policy in few chunks, and the best in
/// as many as the kept one has and in more; and the kept schedule rerouted, before what is more work. Where
/// near is enough, what is less work than rerouting goes first.
std::vector<std::vector<Candidate>> batches_of_kept(const std::vector<EngineInfo>& engines,
                                                    const EngineInfo& kept, const Demand& demand,
                                                    const SolveOptions& options,
                                                    const std::vector<Trial>& trials) {
  const auto position = static_cast<std::size_t>(&kept - engines.data());
  std::vector<std::vector<Candidate>> of_kept;
  const Demand as_kept = demand.with_chunks(kept.only_chunks);
  for (const std::string& policy : kept.policies)
    of_kept.push_back({{position, kept.only_chunks, policy, options.seed, kept.work(as_kept, policy)}});
  std::map<int, std::vector<Candidate>> by_chunks;
  std::vector<Candidate> scouts;
  for (std::size_t e = 0; e < engines.size(); ++e) {
    if (e == position) continue;
    if (engines[e].policies.size() > 1 && options.policy.empty()) {
      const int chunks = count_of_scouts(engines[e], demand, chunk_counts_of(engines[e], demand, options));
      const Demand split = demand.with_chunks(std::max(chunks, 1));
      for (const std::string& policy : engines[e].policies)
        if (chunks > 0) scouts.push_back({e, chunks, policy, options.seed, engines[e].work(split, policy)});
    }
    std::vector<std::string> policies = ranked_policies(engines[e], e, trials);
    if (!options.policy.empty()) policies = {options.policy};
    if (policies.empty()) policies = {""};
    for (const int chunks : counts_after_kept(engines[e], kept.only_chunks, demand, options)) {
      const Demand split = demand.with_chunks(chunks);
      const double each = engines[e].work(split, policies.front());
      const auto most =
          std::clamp<std::size_t>(static_cast<std::size_t>(kWorkAfterKept / each), 1, policies.size());
      for (std::size_t p = 0; p < most; ++p)
        by_chunks[chunks].push_back(
            {e, chunks, policies[p], options.seed, engines[e].work(split, policies[p])});
    }
  }
  std::vector<std::vector<Candidate>> batches;
  // Where near is enough, the best of many chunks is more than is asked for.
  const bool scouts_follow = options.enough_gap.has_value();
  if (!scouts.empty() && !scouts_follow) batches.push_back(std::move(scouts));
  for (auto& [chunks, batch] : by_chunks) batches.push_back(std::move(batch));
  if (!scouts.empty() && scouts_follow) batches.push_back(std::move(scouts));
  const double of_rerouting = kReroutingOverListing * of_kept.back().front().work;
  if (of_kept.size() > 1 && scouts_follow) {
    std::vector<std::vector<Candidate>> quick =
        batches_anew(engines, demand, options, {}, kWorkBudget, false);
    quick.erase(end_of_work(quick, of_rerouting), quick.end());
    std::erase_if(quick, &std::vector<Candidate>::empty);
    quick.push_back(of_kept.back());
    std::ranges::move(batches, std::back_inserter(quick));
    batches = std::move(quick);
  } else if (of_kept.size() > 1) {
    batches.insert(end_of_work(batches, of_rerouting), of_kept.back());
  }
  batches.insert(batches.begin(), std::move(of_kept.front()));
  return batches;
}

}  // namespace

std::vector<std::vector<Candidate>> first_batches(const std::vector<EngineInfo>& engines,
                                                  const Demand& demand, const SolveOptions& options,
                                                  const std::vector<Trial>& trials, double budget,
                                                  bool is_part) {
  if (const EngineInfo* kept = engine_of_kept(engines))
    return batches_of_kept(engines, *kept, demand, options, trials);
  return batches_anew(engines, demand, options, trials, budget, is_part);
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
    const EngineInfo& of_trial = engines[pair.first];
    const bool varies = !of_trial.policies.empty() && of_trial.takes_seeds && of_trial.only_chunks == 0;
    if (varies && std::find(chosen.begin(), chosen.end(), pair) == chosen.end()) chosen.push_back(pair);
  }

  std::vector<Candidate> batch;
  double work = 0;
  // Every engine's best policy in more chunks than were affordable for all: often what is left of the gap is
  // the time of one chunk.
  for (std::size_t e = 0; e < engines.size() && !chosen.empty(); ++e) {
    if (engines[e].policies.empty() || engines[e].only_chunks > 0) continue;
    int most_tried = 0;
    for (const Trial& trial : trials) {
      if (trial.candidate.engine == e) most_tried = std::max(most_tried, trial.candidate.chunks);
    }
    const std::vector<int> counts = chunk_counts_of(engines[e], demand, options);
    const auto next = std::ranges::upper_bound(counts, most_tried);
    if (next == counts.end()) continue;
    const Demand split = demand.with_chunks(*next);
    const std::string policy = policies_of(engines, e, split, options, trials).front();
    const double finer = engines[e].work(split, policy);
    if (finer > kWorkBudget / 4) continue;
    batch.push_back({e, *next, policy, options.seed, finer});
    work += finer;
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

std::vector<int> restart_counts(const Demand& demand, const SolveOptions& options,
                                const std::vector<Trial>& trials, double bound_us, double restart_work,
                                const std::function<double(int)>& expected_us) {
  const Trial* best = nullptr;
  for (const Trial& trial : trials) {
    if (trial.improvable && (!best || trial.finish_us < best->finish_us)) best = &trial;
  }
  const double each = restart_work * demand.num_deliveries();
  const int most = std::min(most_chunks_of_improvement(demand, options),
                            static_cast<int>(std::min(kMostRestartDeliveries / each, 1e6)));
  // Powers of two go evenly over links and rails; another count has to promise more.
  const auto best_within = [&](int below, int until) {
    const bool is_power = std::has_single_bit(static_cast<unsigned>(until));
    const double enough_us = is_power ? bound_us + kMuchNearer * (expected_us(until) - bound_us) : kInfinity;
    std::pair chosen(kInfinity, until);
    for (int chunks = below + 1; chunks <= until; ++chunks)
      chosen = std::min(chosen, std::pair(expected_us(chunks), chunks));
    return chosen.first < enough_us ? chosen.second : until;
  };
  const int known = static_cast<int>(std::bit_floor(static_cast<unsigned>(best->candidate.chunks)));
  std::vector<int> counts;
  for (int below = known; below < most; below = std::min(2 * below, most)) {
    const int chunks = best_within(below, std::min(2 * below, most));
    if (chunks > best->candidate.chunks && expected_us(chunks) < best->finish_us) counts.push_back(chunks);
  }
  if (!counts.empty()) counts.insert(counts.begin(), best_within(known / 2, known));
  return counts;
}

Candidate restart_candidate(const std::vector<EngineInfo>& engines, const Demand& demand,
                            const SolveOptions& options, const std::vector<Trial>& trials, int chunks,
                            std::size_t variant) {
  const Demand split = demand.with_chunks(chunks);
  Candidate candidate{0, chunks, {}, options.seed, kInfinity};
  for (std::size_t e = 0; e < engines.size(); ++e) {
    const double work = engines[e].work(split, options.policy);
    if (!engines[e].supports_local_search || engines[e].only_chunks > 0 || work >= candidate.work) continue;
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
  policies.resize(std::min(policies.size(), kRestartPolicies));
  const std::size_t further = variant - ranked.size();
  candidate.policy = policies[further % policies.size()];
  candidate.seed = next_seed + further / policies.size();
  return candidate;
}

}  // namespace rondo
