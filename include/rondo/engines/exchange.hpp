#pragma once

#include <optional>
#include <vector>

#include "rondo/core/collective.hpp"
#include "rondo/core/hops.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/core/topology.hpp"

namespace rondo {

/// AllReduce among GPUs that exchange whole chunks.
struct ExchangeProblem {
  const Topology& topology;
  const HopTable& hops;
  /// As many each, at least two: chunk c is one of those that members[c / chunks_a_place % members.size()]
  /// add up and want.
  std::vector<std::vector<GpuId>> members = {};
  int chunks_a_place = 1;
  const Demand& demand;
  int concurrency = 0;
  /// Of each two members that follow one another the first has a sum of both, and the second has all in the
  /// end.
  bool in_pairs = false;
};

/// AllReduce level by level. First, groups of radices[0] members that follow one another add up what they
/// have, then radices[1] such groups, and so on; the radices multiply to the number of members. In each level
/// GPUs with a hop from every other group take the groups' sums from there, as long as who sends has not
/// added anything yet; others get the result from those that have it. In pairs, the second of each first gets
/// what the first one has, and the radices multiply to the number of pairs. With radices of 2 this is
/// recursive doubling, with others recursive multiplying (Ruefenacht, Bull, Booth, 2017). Nothing where hops
/// do not join the groups.
std::optional<Schedule> exchange(const ExchangeProblem& problem, const std::vector<int>& radices);

/// Whether switches copy, so that exchange_by_copies() may gain.
bool can_exchange_by_copies(const ExchangeProblem& problem);

/// The same levels, but what a member sends to several others goes there as one transfer that switches copy:
/// of each group, chunk by chunk in turn, those members send that are nearest to who listens. All listen to
/// the other groups themselves. Nothing in pairs, where switches do not lead there, or where who sends would
/// have added something before.
std::optional<Schedule> exchange_by_copies(const ExchangeProblem& problem, const std::vector<int>& radices);

/// Each place has a member in each of `groups`, in their order, who has gathered the group's sums. They go to
/// all others straight away over switches that copy: the own group's first, which takes the place of what a
/// GPU had, then the others', which it adds. Nothing where switches do not lead there, or who sends would
/// have added something before.
std::optional<Schedule> tell_by_copies(const ExchangeProblem& problem,
                                       const std::vector<std::vector<GpuId>>& groups);

/// How members are grouped.
struct ExchangeLevels {
  std::vector<int> radices = {};
  std::vector<std::vector<GpuId>> members = {};  ///< in their order
  bool by_copies = false;
  double finish_us = 0;
};

/// One or the other of the two, as `levels` have it; by copies as far as that works.
std::optional<Schedule> exchange(const ExchangeProblem& problem, const ExchangeLevels& levels);

/// Of `tried` radices those that end first, with members in the order given and, where all chunks have the
/// same members and these are in no pairs, in that of their nearness. Limited by the messages weighed.
std::optional<ExchangeLevels> best_levels(const ExchangeProblem& problem,
                                          std::vector<std::vector<int>> tried);

/// All ways to write `count` >= 2 as a product of factors >= 2 in an order.
std::vector<std::vector<int>> ordered_factorisations(int count);

}  // namespace rondo
