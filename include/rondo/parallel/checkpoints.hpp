#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rondo/core/stopwatch.hpp"
#include "rondo/parallel/communicator.hpp"

namespace rondo {

/// Where states are kept; called on the root alone.
struct StateStore {
  /// The newest whole state of this name; nothing where there is none.
  std::function<std::optional<Bytes>(const std::string& name)> newest = {};
  /// Keeps a state, whole or not at all. Throws Error(cannot_create).
  std::function<void(const std::string& name, const Bytes& state)> keep = {};
};

/// How the long phases of a run survive it: now and then each offers its state under a name of its own
/// ("search", "columns"), and when it begins it asks for the newest. A state is what the phase would have at
/// that place in an undisturbed run, on any number of ranks: nothing that a signal has cut short.
class Checkpoints {
 public:
  /// Keeps nothing.
  Checkpoints() = default;
  /// `every_s`: seconds between two states of a run; 0 keeps every one that is offered.
  Checkpoints(StateStore store, double every_s) : store_(std::move(store)), every_s_(every_s) {}

  /// The names of all states begin so from here on: of a search that is a part of a longer run.
  void set_prefix(std::string prefix) { prefix_ = std::move(prefix); }

  /// Collective. The same bytes on every rank.
  std::optional<Bytes> newest(const Communicator& communicator, const std::string& name);
  /// Collective. Keeps what `state` gives if it is time to. `state` is called on every rank, so that it may
  /// gather; the root's bytes are kept. Returns whether they were.
  bool offer(const Communicator& communicator, const std::string& name, const std::function<Bytes()>& state);
  /// Collective. The same without waiting for its time.
  void keep(const Communicator& communicator, const std::string& name, const std::function<Bytes()>& state);

  /// What keeping took on this rank so far.
  double seconds() const { return seconds_; }
  /// The names of the states that newest() has found, in order.
  const std::vector<std::string>& resumed() const { return resumed_; }

 private:
  StateStore store_;
  double every_s_ = 0;
  std::string prefix_;
  double seconds_ = 0;
  std::vector<std::string> resumed_;
  Stopwatch since_last_;
};

}  // namespace rondo
