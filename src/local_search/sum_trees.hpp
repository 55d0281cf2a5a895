#pragma once

#include <cstddef>
#include <optional>
#include <tuple>
#include <vector>

#include "forest.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/local_search/transfer_plan.hpp"
#include "rondo/parallel/messages.hpp"

namespace rondo {

/// A plan of sums that all GPUs add up and want, as two trees a chunk: along one parts are added up on the
/// way to its root, along the other the sum spreads from there.
struct SumTrees {
  struct Tree {
    Forest::Root root;         ///< where the parts meet, and by when they are there
    Forest::Tree sums = {};    ///< read backwards: from the root on
    Forest::Tree spread = {};  ///< read forwards
    double begins_us = 0;      ///< the first part sets out; below 0 where it would have to before it is there
    double ends_us = 0;        ///< the last GPU has the sum
  };
  std::vector<Tree> of_chunk = {};

  double finish_us() const;
};

auto members_of(SameAs<SumTrees::Tree> auto& t) {
  return std::tie(t.root, t.sums, t.spread, t.begins_us, t.ends_us);
}
auto members_of(SameAs<SumTrees> auto& t) {
  return std::tie(t.of_chunk);
}

/// Where such plans live.
struct SumSpace {
  PlanSpace spread;       ///< of the same hops as sums, and chunks of the same bytes
  double horizon_us = 0;  ///< a time in trees of sums is this minus the time
};

struct SumPlan {
  SumTrees trees;
  SumSpace space;
};

/// The plan of a schedule that the replay accepts, in as many chunks as `demand`. Nothing where a switch
/// adds, where parts or sums do not go along trees, or where a transfer waits on its way or is slow.
std::optional<SumPlan> sum_plan_of(const Schedule& schedule, const Topology& topology, const Demand& demand,
                                   int concurrency);

Schedule schedule_of(const SumTrees& trees, const SumSpace& space);

/// Double justification (rondo/local_search/justification.hpp): each transfer as late as what follows it and
/// the links allow, the last one first, then each as early as possible, in the order of its latest start. All
/// parts set out once they are there.
SumTrees justified(const SumTrees& trees, const SumSpace& space);

}  // namespace rondo
