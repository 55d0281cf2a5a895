#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rondo/core/certificate.hpp"
#include "rondo/flows/steady_flow.hpp"
#include "rondo/flows/steiner_packing.hpp"
#include "rondo/model/deadline.hpp"

namespace rondo {

/// All bounds that could be derived, best first. Each value is what sound_bound_of (core) gives for its
/// certificate.
struct Bounds {
  std::vector<LowerBound> all = {};
  std::vector<std::string> remarks = {};  ///< sentences a user should read: what was left out and why
  std::shared_ptr<const SteadyFlow> steady = nullptr;       ///< of the links alone, without shared bandwidth
  std::shared_ptr<const SteinerPacking> packing = nullptr;  ///< where the demand takes Steiner trees
  const LowerBound& best() const { return all.front(); }
  /// Best first.
  std::vector<const LowerBound*> best_of_each_kind() const;
};

/// Latency bound of the farthest pair that exchanges data; cuts by max-flow for every demand (for AllGather
/// the exact cut of ForestColl, arXiv 2402.06787, section 3, by Newton steps on T; single GPUs and chassis
/// and their complements besides, since with latency another cut may give more); for unicast demand a
/// metric: the duals of the steady-state flow, or the prices of a balanced routing where the flow was too
/// large to be solved; for data with several destinations beside others a metric with periods: the duals of
/// a packing of Steiner trees; for sums that several want partitions; at last a time cut, if it proves more
/// than all these, and so joint cuts where not all switches copy and knowledge where messages cost. For sums
/// for one GPU each all this is done on the transposed problem, which `steady` is then of. Past the limits'
/// seconds weaker bounds do. Throws Error(bad_data) where nothing has to move. Collective where
/// tools.on_all_ranks.
Bounds lower_bounds(const Instance& instance, const Toolbox& tools, bool use_symmetry = true,
                    const SolveLimits& limits = {});

/// Knowledge of a destination for demand of kind reduction, which lower_bounds() has besides those of the
/// transposed problem; nothing where it is not more than `least_us`.
std::optional<LowerBound> find_knowledge_of_sums(const Instance& instance, bool use_symmetry, double least_us,
                                                 const Deadline& deadline = {});

}  // namespace rondo
