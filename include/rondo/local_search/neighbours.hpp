#pragma once

#include <cstdint>
#include <vector>

#include "rondo/local_search/transfer_plan.hpp"

namespace rondo {

/// What is known of a plan before its neighbours are looked at.
struct SurveyedPlan {
  TransferPlan plan;
  std::vector<double> latest_start_us;  ///< of justification.hpp
  std::vector<double> due_us;
  std::vector<double> load;  ///< per link
};

SurveyedPlan survey(TransferPlan plan, const PlanSpace& space);

/// A neighbour of the incumbent (Shaw, "Using constraint programming and local search methods to solve
/// vehicle routing problems", CP 1998): of a time window all transfers, the critical ones, those at a GPU or
/// a chassis that ends late, or those of a part of the chunks are freed: they change places in the order of
/// placing, and some may come over other hops, the soonest or the cheapest in time, where heavily loaded
/// links are dear. What comes close enough, by `bound_us`, is justified. The same `seed`, the same neighbour.
TransferPlan neighbour_of(const SurveyedPlan& incumbent, const PlanSpace& space, double bound_us,
                          std::uint64_t seed);

}  // namespace rondo
