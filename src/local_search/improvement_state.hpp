#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

#include "rondo/local_search/improvement.hpp"
#include "rondo/local_search/transfer_plan.hpp"
#include "rondo/parallel/messages.hpp"

namespace rondo {

auto members_of(SameAs<TransferPlan> auto& p) {
  return std::tie(p.transfers, p.quality);
}

auto members_of(SameAs<ImprovementOrigin> auto& o) {
  return std::tie(o.chunks, o.variant);
}

/// What a restart of list scheduling has found.
struct RestartFind {
  int chunks = 0;
  std::size_t variant = 0;
  double finish_us = 0;
};
struct RestartSchedule {
  RestartFind find = {};
  std::vector<Send> sends = {};  ///< none where they would not be of use
};

auto members_of(SameAs<RestartSchedule> auto& s) {
  return std::tie(s.find, s.sends);
}

/// How far the search is after a whole number of rounds.
struct ImprovementState {
  std::uint64_t rounds = 0;
  std::uint64_t idle_rounds = 0;   ///< in a row, at this number of chunks
  std::uint64_t level_rounds = 0;  ///< at this number of chunks
  std::uint64_t successes = 0;
  std::uint64_t tries = 0;
  double work = 0;
  double level_end = 0;            ///< the share of work or time at which the level gives way to the next
  std::size_t restart_rounds = 0;  ///< of the task's fresh chunk counts, those that are done
  std::vector<std::size_t> restart_best = {};  ///< the last such round's variants, the best first
  std::vector<RestartFind> restart = {};       ///< those that were the best of all when they came
  int chunks = 0;                              ///< of the plan; 0: not begun
  ImprovementOrigin origin = {};               ///< of the plan
  bool splits_in_vain = false;  ///< more chunks brought nothing since the last success that counts
  std::vector<std::vector<LinkId>> paths = {};  ///< the hops that a plan space does not begin with
};

auto members_of(SameAs<ImprovementState> auto& s) {
  return std::tie(s.rounds, s.idle_rounds, s.level_rounds, s.successes, s.tries, s.work, s.level_end,
                  s.restart_rounds, s.restart_best, s.restart, s.chunks, s.origin, s.splits_in_vain, s.paths);
}

}  // namespace rondo
