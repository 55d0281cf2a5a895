#pragma once

#include <cstdint>
#include <vector>

#include "rondo/local_search/transfer_plan.hpp"

namespace rondo {

/// A plan with the quantities that all of its neighbours are derived from.
struct SurveyedPlan {
  TransferPlan plan;
  std::vector<double> latest_start_us;  ///< of justification.hpp
  std::vector<double> due_us;
  std::vector<double> load;  ///< per link
};

SurveyedPlan survey(TransferPlan plan, const PlanSpace& space);

/// A neighbour of the incumbent (Shaw, "Using constraint programming and local search methods to solve
/// vehicle routing problems", CP 1998). Transfers in a random time window are freed: all of them, the
/// critical ones, those at a GPU or chassis that ends late, or those of a random part of the chunks. Freed
/// transfers change their places in the order of placing, and some may take other hops: the one that arrives
/// first, or the cheapest one in time, with prices that grow with the load of links. Neighbours that are near
/// enough to `bound_us` are justified. The same `seed` gives the same neighbour.
TransferPlan neighbour_of(const SurveyedPlan& incumbent, const PlanSpace& space, double bound_us,
                          std::uint64_t seed);

}  // namespace rondo
