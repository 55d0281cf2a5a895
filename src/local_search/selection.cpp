#include "selection.hpp"

#include <algorithm>

#include "rondo/core/index.hpp"
#include "rondo/local_search/justification.hpp"

namespace rondo {
namespace {

/// A neighbour that is later than the incumbent by more than this share of the gap in us is not justified.
constexpr double kHopeless = 0.5;

/// A random GPU whose last arrival is within `within_us` of the finish time, or of the last of all where
/// nothing is that late: the plan may end earlier than the schedule that it was read from.
GpuId late_gpu(const TransferPlan& plan, const PlanSpace& space, double within_us, Random& random) {
  std::vector<char> late(space.topology->num_gpus(), 0);
  double last_us = 0;
  for (const PlannedTransfer& t : plan.transfers) last_us = std::max(last_us, space.arrival_us(t));
  last_us = std::min(last_us, plan.quality.finish_us);
  for (const PlannedTransfer& t : plan.transfers) {
    if (space.arrival_us(t) >= last_us - within_us) late[space.hop(t).dst.index()] = 1;
  }
  const auto count = static_cast<std::size_t>(std::ranges::count(late, 1));
  std::size_t skip = random.below(count);
  std::size_t g = 0;
  while (late[g] == 0 || skip-- > 0) ++g;
  return GpuId{g};
}

}  // namespace

double mean_duration_us(const TransferPlan& plan, const PlanSpace& space) {
  double mean_us = 0;
  for (const PlannedTransfer& t : plan.transfers)
    mean_us += space.duration_us(t) / static_cast<double>(plan.transfers.size());
  return mean_us;
}

TransferPlan justified_if_near(const TransferPlan& plan, const SurveyedPlan& incumbent,
                               const PlanSpace& space, double bound_us) {
  const double finish_us = incumbent.plan.quality.finish_us;
  if (plan.quality.finish_us - finish_us > kHopeless * (finish_us - bound_us)) return plan;
  return justified(plan, space);
}

Selection::Selection(const SurveyedPlan& incumbent, const PlanSpace& space, double chunk_us, Random& random)
    : incumbent_(incumbent), space_(space), topology_(*space.topology) {
  const double finish = incumbent.plan.quality.finish_us;
  const double width = one_in(random, 6) ? 2 * finish : finish * power_of_two(random, -6, 0);
  from_us_ = random.unit() * (finish + width) - width;
  until_us_ = from_us_ + width;
  kind_ = static_cast<Kind>(random.below(kKinds));
  slack_us_ = chunk_us * power_of_two(random, -3, 3);
  gpu_ = late_gpu(incumbent.plan, space, chunk_us, random);
  chunk_classes_ = 2 + random.below(6);
  salt_ = random.next();
}

bool Selection::operator()(std::size_t i) const {
  const PlannedTransfer& t = incumbent_.plan.transfers[i];
  if (t.start_us < from_us_ || t.start_us > until_us_) return false;
  const Hop& hop = space_.hop(t);
  switch (kind_) {
    case Kind::all:
      return true;
    case Kind::critical:
      return incumbent_.latest_start_us[i] - t.start_us <= slack_us_;
    case Kind::gpu:
      return hop.src == gpu_ || hop.dst == gpu_;
    case Kind::chassis:
      return same_chassis(hop.src) || same_chassis(hop.dst);
    case Kind::chunks:
      return mix_bits(t.chunk.index() + salt_) % chunk_classes_ == 0;
  }
  return false;
}

bool Selection::same_chassis(GpuId g) const {
  const auto& chassis = topology_.node(topology_.node_of(gpu_)).chassis;
  return g == gpu_ || (chassis && topology_.node(topology_.node_of(g)).chassis == chassis);
}

}  // namespace rondo
