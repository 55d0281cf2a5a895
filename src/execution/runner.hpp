#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "deal.hpp"
#include "rondo/execution/program.hpp"
#include "rondo/parallel/exchange.hpp"

namespace rondo::execution {

/// How far a program came.
struct RunOutcome {
  bool finished = false;  ///< every step of every lane, on all ranks
  std::vector<int> next =
      {};  ///< per lane: the step that it stands at (its number of steps when done); own lanes
  std::vector<std::string> faults = {};  ///< found on this rank
  std::int64_t messages = 0;             ///< sent by this rank, without acknowledgements
  std::int64_t bytes = 0;
};

/// Runs the lanes of one rank's GPUs. `memory` holds one buffer a GPU, empty for those of other ranks.
class Runner {
 public:
  Runner(const Program& program, const Deal& deal, Exchange& exchange, int slots, std::vector<Bytes>& memory);

  /// Collective. Ends when all lanes of all ranks are done or nothing can move any more.
  RunOutcome run();

 private:
  enum Counter : std::size_t { sent, received, steps, unfinished, faults, count };

  void advance(int lane);
  bool ready(const Step& step, int lane);
  void perform(const Step& step, Lane const& lane);
  void deliver(Arrival arrival);
  void post(int gpu, int connection, bool acknowledge, const std::byte* data, std::size_t bytes);
  void wake(std::vector<int>& lanes);
  bool quiescent();

  const Program& program_;
  Deal deal_;
  Exchange& exchange_;
  std::vector<Bytes>& memory_;
  std::vector<int> next_;                   ///< per lane
  std::deque<int> runnable_;                ///< lanes that may have something to do
  std::vector<std::vector<int>> waiting_;   ///< per lane: lanes that wait for a step of it
  std::vector<int> sender_, receiver_;      ///< per connection: lane, -1 where there is none
  std::vector<int> free_slots_;             ///< per connection, at the sender
  std::vector<std::deque<Bytes>> arrived_;  ///< per connection, at the receiver, with their heads
  std::vector<std::int64_t> counters_, last_sums_;
  bool summing_ = false;
  RunOutcome outcome_;
};

/// The lanes that wait for each other, given where all lanes stand: a cycle if there is one, else the first
/// lanes.
std::string describe_deadlock(const Program& program, const std::vector<int>& next, int slots);

}  // namespace rondo::execution
