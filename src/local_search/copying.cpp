#include <algorithm>
#include <cmath>

#include "copies.hpp"
#include "rondo/core/index.hpp"
#include "rondo/local_search/justification.hpp"
#include "rondo/local_search/neighbours.hpp"
#include "rondo/model/linear_model.hpp"
#include "selection.hpp"

namespace rondo {
namespace {

/// Draws for each copy that a move is to make.
constexpr std::size_t kDrawsPerCopy = 16;

/// Makes transfers copies of others of their chunk, without moving those in time.
class Copying {
 public:
  /// `dearness`: us of delay that equal a us of a link's time, if the link were loaded all the time;
  /// infinity: the least load in time counts, not the arrival.
  Copying(const SurveyedPlan& incumbent, const PlanSpace& space, double exponent, double dearness)
      : incumbent_(incumbent),
        space_(space),
        exponent_(exponent),
        dearness_(dearness),
        plan_(incumbent.plan),
        of_chunk_(space.demand.num_chunks()),
        key_(incumbent.latest_start_us) {
    for (std::size_t i = 0; i < plan_.transfers.size(); ++i)
      of_chunk_[plan_.transfers[i].chunk.index()].push_back(static_cast<int>(i));
  }

  void copy(std::size_t i) {
    const PlannedTransfer& t = plan_.transfers[i];
    const bool has_copies = std::ranges::any_of(of_chunk_[t.chunk.index()], [&](int other) {
      return plan_.transfers[index(other)].copy_of == static_cast<int>(i);
    });
    if (has_copies) return;
    const bool in_time = !std::isfinite(dearness_);
    const double bytes = space_.bytes(t);
    double least =
        in_time ? price_of(t.hop, 0, bytes) : space_.arrival_us(t) + dearness_ * price_of(t.hop, 0, bytes);
    int best = -1, best_hop = -1;
    for (const int other : of_chunk_[t.chunk.index()]) {
      const PlannedTransfer& sent = plan_.transfers[index(other)];
      const Hop& taken = space_.hop(sent);
      if (taken.links.size() < 2 || depends(other, static_cast<int>(i)) || same_tree(other, i)) continue;
      for (const int h : space_.hops_between(taken.src, space_.hop(t).dst)) {
        const Hop& hop = space_.hops[index(h)];
        if (!may_be_copied(*space_.topology, taken, hop)) continue;
        const double arrival_us = sent.start_us + hop.duration_us(bytes);
        const double price = price_of(h, links_in_common(taken, hop), bytes);
        if (in_time && arrival_us > incumbent_.due_us[i]) continue;
        const double cost = in_time ? price : arrival_us + dearness_ * price;
        if (cost >= least * (1 - 1e-9) || !fits(other, h)) continue;
        least = cost;
        best = other;
        best_hop = h;
      }
    }
    if (best < 0) return;
    const int original = original_of(plan_.transfers, index(best));
    plan_.transfers[i].hop = best_hop;
    plan_.transfers[i].cause = plan_.transfers[index(original)].cause;
    plan_.transfers[i].copy_of = original;
    plan_.transfers[i].start_us = plan_.transfers[index(original)].start_us;
    key_[i] = key_[index(original)];
    ++count_;
  }

  std::size_t count() const { return count_; }
  TransferPlan placed() const { return placed_forward(plan_, space_, key_); }

 private:
  double price_of(int h, std::size_t first_link, double bytes) const {
    const Hop& hop = space_.hops[index(h)];
    double sum = 0;
    for (std::size_t k = first_link; k < hop.links.size(); ++k)
      sum += std::pow(incumbent_.load[hop.links[k].link.index()], exponent_) * hop.links[k].load_us(bytes);
    return sum;
  }
  bool depends(int transfer, int on) const {
    while (transfer >= 0 && transfer != on) transfer = plan_.transfers[index(transfer)].cause;
    return transfer == on;
  }
  bool same_tree(int other, std::size_t i) const {
    return original_of(plan_.transfers, index(other)) == original_of(plan_.transfers, i);
  }
  /// Whether the hop enters nothing that the tree of transfer `other` enters, once it has left that transfer.
  bool fits(int other, int h) const {
    const Hop& hop = space_.hops[index(h)];
    const std::size_t common = links_in_common(space_.hop(plan_.transfers[index(other)]), hop);
    const int original = original_of(plan_.transfers, index(other));
    return std::ranges::none_of(of_chunk_[plan_.transfers[index(other)].chunk.index()], [&](int member) {
      return original_of(plan_.transfers, index(member)) == original &&
             enters_again(*space_.topology, hop, common, space_.hop(plan_.transfers[index(member)]));
    });
  }

  const SurveyedPlan& incumbent_;
  const PlanSpace& space_;
  double exponent_;
  double dearness_;
  TransferPlan plan_;
  std::vector<std::vector<int>> of_chunk_;  ///< transfers
  std::vector<double> key_;
  std::size_t count_ = 0;
};

}  // namespace

std::optional<TransferPlan> copied(const SurveyedPlan& incumbent, const PlanSpace& space, double bound_us,
                                   Random& random) {
  const auto& transfers = incumbent.plan.transfers;
  const Selection selected(incumbent, space, mean_duration_us(incumbent.plan, space), random);
  const double exponent = std::round(power_of_two(random, 1, 5));
  const double dearness = one_in(random, 2) ? kInfinity : power_of_two(random, -3, 3);
  Copying copying(incumbent, space, exponent, dearness);
  const std::size_t most = std::size_t{1} << random.below(7);
  for (std::size_t n = 0; n < kDrawsPerCopy * most && copying.count() < most; ++n) {
    const std::size_t i = random.below(transfers.size());
    if (selected(i)) copying.copy(i);
  }
  if (copying.count() == 0) return std::nullopt;
  return justified_if_near(copying.placed(), incumbent, space, bound_us);
}

}  // namespace rondo
