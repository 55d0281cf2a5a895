#include "window_choice.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

namespace rondo {
namespace {

constexpr std::size_t kMostEnds = 16;  ///< windows of a round that last to the end
constexpr std::size_t kFewestMembers = 100;
constexpr std::size_t kMostMembers = 400;
/// Of a window that lasts to the end: nothing has to be free earlier after it, so that it may be long.
constexpr std::size_t kMostMembersOfEnd = 400;
/// Of the finish time: transfers with less slack are critical.
constexpr double kNoSlack = 1e-6;

/// Stretches of time that do not touch, at random around critical transfers, in the order of time.
std::vector<Window> stretches(const std::vector<double>& critical_starts_us, std::size_t most,
                              const WindowChooser& chooser, Random& random) {
  const std::size_t members = kFewestMembers + random.below(kMostMembers - kFewestMembers + 1);
  std::vector<Window> windows;
  for (std::size_t w = 0; w < most; ++w) {
    const double share = (static_cast<double>(w) + random.unit()) / static_cast<double>(most);
    const double from_us =
        critical_starts_us[static_cast<std::size_t>(share * static_cast<double>(critical_starts_us.size()))];
    if (!windows.empty() && from_us < windows.back().until_us) continue;
    Window window = chooser.from(from_us, members);
    if (!window.members.empty()) windows.push_back(std::move(window));
  }
  return windows;
}

/// Of lengths at random: what starts last.
std::vector<Window> ends(const TransferPlan& plan, std::size_t count, const WindowChooser& chooser,
                         Random& random) {
  std::vector<double> starts_us = starts_of(plan);
  std::ranges::sort(starts_us, std::greater());
  std::vector<Window> windows;
  for (std::size_t w = 0; w < count; ++w) {
    const double share = (static_cast<double>(w) + random.unit()) / static_cast<double>(count);
    const double members =
        static_cast<double>(kFewestMembers) *
        std::pow(static_cast<double>(kMostMembersOfEnd) / static_cast<double>(kFewestMembers), share);
    const std::size_t last = std::min(starts_us.size() - 1, static_cast<std::size_t>(members));
    windows.push_back(chooser.from(starts_us[last], starts_us.size()));
  }
  return windows;
}

}  // namespace

ChosenWindows choose_windows(const SurveyedPlan& plan, const PlanSpace& space, std::size_t most,
                             Random& random) {
  const auto& transfers = plan.plan.transfers;
  std::vector<double> starts;
  std::vector<double> occupied;
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    const PlannedTransfer& t = transfers[i];
    if (plan.latest_start_us[i] - t.start_us > kNoSlack * plan.plan.quality.finish_us) continue;
    starts.push_back(t.start_us);
    for (const HopLink& part : space.hop(t).links) occupied.push_back(part.occupied_us(space.bytes(t)));
  }
  if (starts.empty()) return {};
  std::ranges::sort(starts);
  const auto middle = occupied.begin() + static_cast<std::ptrdiff_t>(occupied.size() / 2);
  std::ranges::nth_element(occupied, middle);

  const WindowChooser chooser(plan);
  const std::size_t num_ends = std::min(most / 2, kMostEnds);
  ChosenWindows chosen{stretches(starts, most - num_ends, chooser, random), *middle};
  for (Window& window : ends(plan.plan, num_ends, chooser, random))
    chosen.windows.push_back(std::move(window));
  return chosen;
}

}  // namespace rondo
