#pragma once

#include <vector>

#include "rondo/local_search/transfer_plan.hpp"

/// Passes over a plan: serial schedule generation with insertion, and forward-backward improvement by
/// justification (Valls, Ballestin and Quintanilla, "Justification and RCPSP: a technique that pays",
/// European Journal of Operational Research 165, 2005), with links as resources and causes as precedence.
namespace rondo {

/// What a forward pass may decide anew; empty vectors: nothing.
struct PlanFreedom {
  std::vector<char> free = {};     ///< per transfer: whether it may come over another hop
  std::vector<double> price = {};  ///< per link: us of delay that a us on it is worth
  /// Per transfer, with `price`: of the hops by which the chunk is there in time the cheapest is taken.
  /// Empty: the one by which it is there first, the price added.
  std::vector<double> due_us = {};
};

/// Places the transfers one after another in the order of `key`, each as early as its cause and the links
/// allow between those placed before, and numbers them in that order. A transfer without its cause placed
/// waits for it. `plan`'s starts are not looked at.
TransferPlan placed_forward(const TransferPlan& plan, const PlanSpace& space, const std::vector<double>& key,
                            const PlanFreedom& freedom = {});

/// The latest starts without a later finish: placed as late as what they cause and the links allow, the last
/// arrival first.
std::vector<double> latest_starts(const TransferPlan& plan, const PlanSpace& space);

/// The latest arrivals that leave what they cause at the given latest starts, the finish for the others.
std::vector<double> due_times(const TransferPlan& plan, const std::vector<double>& latest_start_us);

/// Forward again by latest starts: ends no later, and often earlier. `plan` itself where it does not.
TransferPlan justified(const TransferPlan& plan, const PlanSpace& space);

/// The share of the time until the finish in which each link is taken.
std::vector<double> link_loads(const TransferPlan& plan, const PlanSpace& space);

}  // namespace rondo
