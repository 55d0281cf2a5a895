#include "window_placing.hpp"

#include "rondo/core/index.hpp"
#include "rondo/local_search/justification.hpp"

namespace rondo {
namespace {

constexpr int kPasses = 4;  ///< of justification

}  // namespace

TransferPlan placed(const PlanView& view, const std::vector<Window>& windows,
                    const std::vector<WindowAnswer>& answers, const Attempt& attempt) {
  const PlanSpace& space = view.space;
  TransferPlan plan = view.surveyed.plan;
  std::vector<double> key = view.surveyed.latest_start_us;
  if (attempt.order == Order::early_between_windows) {
    // In a window and as long again after it others give way.
    std::vector<char> gives_way(key.size(), 0);
    for (std::size_t w = 0; w < windows.size(); ++w) {
      if (attempt.which[w] == 0) continue;
      const double until_us = 2 * windows[w].until_us - windows[w].from_us;
      for (std::size_t i = 0; i < key.size(); ++i) {
        const double start_us = plan.transfers[i].start_us;
        if (start_us >= windows[w].from_us && start_us < until_us) gives_way[i] = 1;
      }
    }
    for (std::size_t i = 0; i < key.size(); ++i) {
      if (gives_way[i] == 0) key[i] = plan.transfers[i].start_us;
    }
  }
  PlanFreedom freedom;
  if (attempt.free != Free::none) freedom.free.assign(key.size(), 0);
  for (std::size_t w = 0; w < windows.size(); ++w) {
    if (attempt.which[w] == 0) continue;
    for (const WindowAnswer::Member& member : answers[w].members) {
      PlannedTransfer& t = plan.transfers[index(member.transfer)];
      const bool is_moved = member.hop != t.hop || member.cause != t.cause;
      if (is_moved || attempt.order == Order::early_between_windows)
        key[index(member.transfer)] = member.start_us;
      if (is_moved) t.copy_of = -1;
      if (attempt.free == Free::members || (attempt.free == Free::moved && is_moved))
        freedom.free[index(member.transfer)] = 1;
      t.hop = member.hop;
      t.cause = member.cause;
    }
  }
  TransferPlan tight = placed_forward(plan, space, key, freedom);
  if (tight.quality.finish_us < view.surveyed.plan.quality.finish_us + view.most_us) {
    for (int pass = 0; pass < kPasses; ++pass) {
      const PlanQuality before = tight.quality;
      tight = justified(tight, space);
      if (!(tight.quality < before)) break;
    }
  }
  drop_useless(tight, space);
  tight.quality = quality_of(tight.transfers, space);
  return tight;
}

}  // namespace rondo
