#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "improvement_state.hpp"
#include "rondo/local_search/improvement.hpp"
#include "rondo/parallel/communicator.hpp"

namespace rondo {

/// Transfers of a plan of the task in so many chunks.
double transfers_of(const ImprovementTask& task, int chunks);

/// What local search may begin with: the starts of its task, and restarts of list scheduling that were better
/// than all before them.
class Starts {
 public:
  using Start = ImprovementTask::Start;

  /// Keeps references to both.
  Starts(const ImprovementTask& task, const Communicator& communicator);
  /// Restarts of an earlier run: each is scheduled anew where it is asked for.
  void recall(const std::vector<RestartFind>& finds);

  /// Of the best of them, or that others have reached.
  double finish_us() const { return finish_us_; }
  const Start& last() const { return all_.back(); }

  /// The one to begin with where as many transfers are easy; null: none. `even_later`: starts in more chunks
  /// than the best one are no worse for ending later.
  const Start* first(double most_easy, bool even_later) const;
  /// In more chunks and earlier, where there is time for those; null: none.
  const Start* better_in_more_chunks(int chunks, double finish_us,
                                     const std::function<bool(int chunks)>& has_time) const;

  /// How many variants of list scheduling the next round has, in the work and time that are left; 0: there is
  /// none. `time`: the share of the time limit that is over.
  std::size_t variants(const ImprovementState& state, double time) const;
  /// Collective. Successive halving: the better half of the variants is tried again in more chunks. One that
  /// ends before `finish_us` and before all starts becomes a start. A round that is interrupted does not
  /// count.
  void play_round(ImprovementState& state, std::size_t count, double finish_us, double time);

 private:
  void remember(const RestartFind& find, std::function<Schedule()> schedule);

  const ImprovementTask& task_;
  const Communicator& communicator_;
  std::vector<Start> all_;  ///< the task's, then the restarts that won
  double finish_us_;
  double share_;  ///< of the time limit, that a restart round took for each transfer
};

}  // namespace rondo
