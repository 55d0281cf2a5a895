#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rondo/core/stopwatch.hpp"
#include "rondo/engines/rounds.hpp"
#include "rondo/parallel/checkpoints.hpp"
#include "rondo/parallel/communicator.hpp"

namespace rondo {

/// Reports progress, one line at a time, on the root rank only.
using Progress = std::function<void(const std::string& line)>;

/// Where a run keeps what it has finished, and what it finds of an earlier start. By default nowhere.
struct RunStore {
  std::vector<RoundRecord> finished = {};  ///< rounds
  FinishRound finish_round = [](const RoundRecord&) {};
  std::shared_ptr<Checkpoints> checkpoints = std::make_shared<Checkpoints>();  ///< of the other long phases
};

/// What a run works with and what it answers to; the same object on every rank but for `progress`.
struct RunContext {
  const Communicator& communicator;
  Progress progress = [](const std::string&) {};
  const std::atomic<bool>* interrupt = nullptr;  ///< set by a signal; null: nothing interrupts
  RunStore store = {};
  Stopwatch clock = {};  ///< since the run began: what a time limit counts by
  /// Whoever asks takes a schedule of which each rank has a part (SynthesisResult::dealt).
  bool deals = false;

  /// For steps that need all of a schedule on each rank.
  RunContext for_whole_schedules() const {
    RunContext context = *this;
    context.deals = false;
    return context;
  }
  Checkpoints& checkpoints() const { return *store.checkpoints; }
  /// Of this rank alone.
  bool interrupt_came() const { return interrupt != nullptr && interrupt->load(); }
  /// Collective: signals reach some ranks earlier than others.
  bool interrupted() const { return communicator.max(interrupt_came() ? 1 : 0) > 0; }
  /// Collective. Clocks differ between ranks: all use the largest.
  double seconds() const { return communicator.max(clock.seconds()); }
  void tell(const std::string& line) const {
    if (communicator.is_root()) progress(line);
  }
};

}  // namespace rondo
