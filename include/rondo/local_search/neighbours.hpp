#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rondo/core/random.hpp"
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

/// A move: a plan near the incumbent, or nothing where there is nothing to change. What it chooses it draws
/// from `stream` alone, so that a stream gives the same plan on whichever rank. A result that is near enough
/// to `bound_us` is justified.
using PlanMove = std::optional<TransferPlan> (*)(const SurveyedPlan& incumbent, const PlanSpace& space,
                                                 double bound_us, Random& stream);

/// Large neighbourhoods (Shaw, "Using constraint programming and local search methods to solve vehicle
/// routing problems", CP 1998) for chunks of several destinations. Transfers in a random time window are
/// freed: all of them, the critical ones, those at a GPU or chassis that ends late, or those of a random part
/// of the chunks. Freed transfers change their places in the order of placing, and some may take other hops,
/// or be copied by a switch: the one that arrives first, or the cheapest one in time, with prices that grow
/// with the load of links.
std::optional<TransferPlan> rearranged(const SurveyedPlan& incumbent, const PlanSpace& space, double bound_us,
                                       Random& stream);

/// The same demand: some transfers come from another GPU that holds the chunk, as copies that a switch makes
/// of what that GPU sends anyway, where that is in time and takes less of loaded links, or is the soonest.
std::optional<TransferPlan> copied(const SurveyedPlan& incumbent, const PlanSpace& space, double bound_us,
                                   Random& stream);

/// For chunks of one destination each: the transfers in a random window change their places in the order of
/// placing.
std::optional<TransferPlan> reordered(const SurveyedPlan& incumbent, const PlanSpace& space, double bound_us,
                                      Random& stream);
/// The same demand: chunks whose way leads over loaded links are placed before others.
std::optional<TransferPlan> loaded_first(const SurveyedPlan& incumbent, const PlanSpace& space,
                                         double bound_us, Random& stream);
/// The same demand: some chunks are taken out, and each is put back over the path that is cheapest then:
/// arrival plus prices that grow with the load of links.
std::optional<TransferPlan> reinserted(const SurveyedPlan& incumbent, const PlanSpace& space, double bound_us,
                                       Random& stream);

/// A neighbour by one of the moves for this kind of demand. The same `seed` gives the same neighbour. Throws
/// TimeIsOver where the deadline of the space is over.
std::optional<TransferPlan> neighbour_of(const SurveyedPlan& incumbent, const PlanSpace& space,
                                         double bound_us, std::uint64_t seed);

}  // namespace rondo
