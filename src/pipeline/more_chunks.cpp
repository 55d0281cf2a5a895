#include "more_chunks.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <ranges>
#include <utility>

#include "rondo/model/linear_model.hpp"

namespace rondo {
namespace {

/// Of engines that pipeline: the fewest chunks whose finish time tells what more of them would bring, and
/// from what part of the best one on a policy is not tried in more. In few, trees of a small share go slowly.
constexpr int kFewestTelling = 1024;
constexpr double kFarBehind = 1.02;
/// The same for whole engines, which have to beat what another way found.
constexpr int kFewestTellingOfAll = 512;
/// Of much unicast demand a policy that is later than another one of its engine by more than this share in
/// fewer chunks is not tried in more.
constexpr double kBehindInFewer = 0.01;

/// Finish times by chunks.
using FinishTimes = std::map<int, double>;

/// By engine and policy.
std::map<std::pair<std::size_t, std::string>, FinishTimes> finish_times(const std::vector<Trial>& trials) {
  std::map<std::pair<std::size_t, std::string>, FinishTimes> by_policy;
  for (const Trial& trial : trials) {
    const Candidate& candidate = trial.candidate;
    if (std::isfinite(trial.finish_us))
      by_policy[{candidate.engine, candidate.policy}][candidate.chunks] = trial.finish_us;
  }
  return by_policy;
}

/// Of a policy of the e-th engine.
FinishTimes finish_times(const std::vector<Trial>& trials, std::size_t e, const std::string& policy) {
  FinishTimes finish_us;
  for (const Trial& trial : trials) {
    if (trial.candidate.engine != e || trial.candidate.policy != policy || !std::isfinite(trial.finish_us))
      continue;
    double& us = finish_us.try_emplace(trial.candidate.chunks, kInfinity).first->second;
    us = std::min(us, trial.finish_us);
  }
  return finish_us;
}

/// Of what pipelines, before which it does not end in however many chunks: finish times fall as a + b /
/// chunks, which the last two tell. In few chunks they also fall as shares are rounded to them: 0 where the
/// last but one are fewer than `fewest`.
double least_in_any_us(const FinishTimes& finish_us, int fewest) {
  if (finish_us.size() < 2) return 0;
  const auto [most, last_us] = *finish_us.rbegin();
  const auto [fewer, before_us] = *std::next(finish_us.rbegin());
  return fewer < fewest ? 0 : last_us - (before_us - last_us) * fewer / (most - fewer);
}

}  // namespace

bool stays_behind(const std::string& policy, std::size_t e, const std::vector<Trial>& trials) {
  double best_us = kInfinity;
  for (const Trial& trial : trials) {
    if (trial.candidate.engine == e) best_us = std::min(best_us, trial.finish_us);
  }
  return least_in_any_us(finish_times(trials, e, policy), kFewestTelling) > kFarBehind * best_us;
}

double expected_us(const std::string& policy, std::size_t e, int chunks, const std::vector<Trial>& trials) {
  const FinishTimes finish_us = finish_times(trials, e, policy);
  if (finish_us.size() < 2) return 0;
  const double least_us = least_in_any_us(finish_us, 0);
  const auto [most, last_us] = *finish_us.rbegin();
  return least_us + (last_us - least_us) * most / chunks;
}

bool was_behind(const std::string& policy, std::size_t e, int chunks, const std::vector<Trial>& trials) {
  std::map<int, std::pair<double, double>> finish_us;  // by chunks: of the policy, and the least
  for (const Trial& trial : trials) {
    if (trial.candidate.engine != e || trial.candidate.chunks >= chunks || !std::isfinite(trial.finish_us))
      continue;
    auto& [own, least] = finish_us.try_emplace(trial.candidate.chunks, kInfinity, kInfinity).first->second;
    if (trial.candidate.policy == policy) own = std::min(own, trial.finish_us);
    least = std::min(least, trial.finish_us);
  }
  if (finish_us.empty()) return false;
  const auto& [own, least] = finish_us.rbegin()->second;
  return own > least * (1 + kBehindInFewer);
}

Expected first_in_more(std::size_t e, int chunks, const std::vector<Trial>& trials) {
  Expected first;
  for (const auto& [which, finish_us] : finish_times(trials)) {
    const auto& [engine, policy] = which;
    if (engine != e || finish_us.rbegin()->first >= chunks) continue;
    const double expected = expected_us(policy, e, chunks, trials);
    if (expected < first.finish_us) first = {policy, expected};
  }
  return first;
}

std::vector<std::string> untold_policies(const EngineInfo& engine, const Candidate& best,
                                         const std::vector<Trial>& trials) {
  std::vector<std::string> policies = engine.policies;
  std::erase_if(policies, [&](const std::string& policy) {
    const FinishTimes tried = finish_times(trials, best.engine, policy);
    return tried.empty() || tried.rbegin()->first >= best.chunks || stays_behind(policy, best.engine, trials);
  });
  return policies;
}

bool all_stay_behind(const std::vector<Trial>& trials, double us) {
  const auto by_policy = finish_times(trials);
  return !by_policy.empty() && std::ranges::all_of(by_policy, [&](const auto& policy) {
    return least_in_any_us(policy.second, kFewestTellingOfAll) > kFarBehind * us;
  });
}

bool all_end_later_in_more(const std::vector<Trial>& trials) {
  const auto by_policy = finish_times(trials);
  return !by_policy.empty() && std::ranges::all_of(by_policy, [&](const auto& policy) {
    const FinishTimes& finish_us = policy.second;
    if (finish_us.size() < 3) return false;
    const double best_us = std::ranges::min(finish_us | std::views::values);
    const auto last = finish_us.rbegin();
    return std::min(last->second, std::next(last)->second) > kFarBehind * best_us;
  });
}

}  // namespace rondo
