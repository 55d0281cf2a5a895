#pragma once

#include <vector>

#include "rondo/local_search/transfer_plan.hpp"

/// Passes over a plan: serial schedule generation with insertion, and forward-backward improvement by
/// justification (Valls, Ballestin and Quintanilla, "Justification and RCPSP: a technique that pays",
/// European Journal of Operational Research 165, 2005), with links as resources and causes as precedence.
/// All but due_times() and link_loads() throw TimeIsOver where the deadline of the space is over.
namespace rondo {

/// The decisions that a forward pass may change; empty vectors: none.
struct PlanFreedom {
  std::vector<char> free = {};     ///< per transfer: whether it may take another hop
  std::vector<double> price = {};  ///< per link: us of delay that equal a us of its time
  /// Per transfer, with `price`: the cheapest hop is chosen among those that deliver the chunk by this time.
  /// Empty: the hop with the least sum of arrival time and price is chosen.
  std::vector<double> due_us = {};
  /// A switch may also copy it from a transfer that is placed already, where that takes it the same way first
  /// and the links on from there are free at that time.
  bool may_copy = false;
};

/// The transfers in the order of `key`; one that would precede its cause comes right after that.
std::vector<int> causal_order(const TransferPlan& plan, const std::vector<double>& key);

/// Places the transfers one after another in the order of `key`, each at the earliest time that its cause and
/// the links allow, gaps between earlier placements included, and numbers them in that order. A transfer is
/// placed after its cause. The starts of `plan` have no influence. Copies are placed with their originals,
/// but free ones by themselves.
TransferPlan placed_forward(const TransferPlan& plan, const PlanSpace& space, const std::vector<double>& key,
                            const PlanFreedom& freedom = {});

/// The latest start of each transfer that leaves the finish time unchanged: transfers are placed backwards
/// from the finish, the last arrival first, each as late as the transfers that it causes and the links allow.
std::vector<double> latest_starts(const TransferPlan& plan, const PlanSpace& space);

/// The latest arrival of each transfer with which those that it causes can begin at their latest starts; the
/// finish time where it causes none.
std::vector<double> due_times(const TransferPlan& plan, const std::vector<double>& latest_start_us);

/// A forward pass in the order of the latest starts; it never ends later and often ends earlier. Returns
/// `plan` itself where it is no better.
TransferPlan justified(const TransferPlan& plan, const PlanSpace& space);

/// Per link, the share of the finish time during which it is occupied.
std::vector<double> link_loads(const TransferPlan& plan, const PlanSpace& space);

}  // namespace rondo
