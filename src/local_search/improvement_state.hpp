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

/// The best result of one restart round.
struct RestartFind {
  int chunks = 0;
  std::size_t variant = 0;
  double finish_us = 0;
};
struct RestartSchedule {
  RestartFind find = {};
  std::vector<Send> sends = {};  ///< empty where the restart is later than the incumbent
};

auto members_of(SameAs<RestartSchedule> auto& s) {
  return std::tie(s.find, s.sends);
}

/// Rounds of replanting at a level: none any more, the next one, or once moves of single transfers find
/// nothing.
enum class ReplantingTurn : std::uint8_t { none, next, after_moves };

/// Two starts may race: which one is going on, or that it is decided.
enum class Race : std::uint8_t { none, first, second };

/// The state of the search after a whole number of rounds.
struct ImprovementState {
  std::uint64_t rounds = 0;
  std::uint64_t idle_tries = 0;   ///< in a row, at this number of chunks
  std::uint64_t level_tries = 0;  ///< at this number of chunks
  std::uint64_t successes = 0;
  std::uint64_t merged = 0;  ///< changes of other streams that came with the best one of their round
  std::uint64_t tries = 0;
  std::uint64_t seeds = 0;  ///< that streams have had
  double work = 0;
  double work_at_gain = 0;                     ///< when the level began or last came nearer to the bound
  double level_end = 0;                        ///< the share of work or time at which the next level begins
  std::size_t restart_rounds = 0;              ///< finished, of the task's restart_chunks
  std::vector<std::size_t> restart_best = {};  ///< variants of the last restart round, best first
  std::vector<RestartFind> restart = {};       ///< restarts that improved on all before them
  int chunks = 0;                              ///< of the plan; 0: the search has not begun
  ImprovementOrigin origin = {};               ///< of the plan
  std::vector<std::uint64_t> good_seeds =
      {};                       ///< of the last round: of neighbours that were better, best first
  bool splits_in_vain = false;  ///< more chunks gave no improvement since the last counting success
  Race race = Race::none;
  double race_end = 0;  ///< the share of work or time at which it is the other one's turn, or decided
  ReplantingTurn replanting = ReplantingTurn::none;
  bool replanting_takes_long = false;           ///< no level begins with it any more
  std::vector<std::vector<LinkId>> paths = {};  ///< hops of the plan that are not hops of the topology
};

auto members_of(SameAs<ImprovementState> auto& s) {
  return std::tie(s.rounds, s.idle_tries, s.level_tries, s.successes, s.merged, s.tries, s.seeds, s.work,
                  s.work_at_gain, s.level_end, s.restart_rounds, s.restart_best, s.restart, s.chunks,
                  s.origin, s.good_seeds, s.splits_in_vain, s.race, s.race_end, s.replanting,
                  s.replanting_takes_long, s.paths);
}

/// A search that another one races with.
struct Rival {
  ImprovementState state = {};
  TransferPlan plan = {};
};

auto members_of(SameAs<Rival> auto& r) {
  return std::tie(r.state, r.plan);
}

}  // namespace rondo
