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

/// Lets a later run resume the long phases of this one. Each phase regularly offers its state under its name
/// ("search", "columns"), and requests the newest one when it begins. A state is the same as at that place of
/// an undisturbed run, on any number of ranks: it contains no result that a signal cut short.
class Checkpoints {
 public:
  /// Keeps nothing.
  Checkpoints() = default;
  /// `every_s`: seconds between two states of a run; 0 keeps every one that is offered.
  Checkpoints(StateStore store, double every_s) : store_(std::move(store)), every_s_(every_s) {}

  /// While it lives, the names of all states have this prefix besides: a search that is a part of a longer
  /// run.
  class Prefix {
   public:
    Prefix(Checkpoints& checkpoints, const std::string& prefix)
        : checkpoints_(checkpoints), before_(checkpoints.prefix_) {
      checkpoints.prefix_ += prefix;
    }
    ~Prefix() { checkpoints_.prefix_ = before_; }
    Prefix(const Prefix&) = delete;
    Prefix& operator=(const Prefix&) = delete;

   private:
    Checkpoints& checkpoints_;
    std::string before_;
  };

  /// Collective. The same bytes on every rank.
  std::optional<Bytes> newest(const Communicator& communicator, const std::string& name);
  /// Collective. Keeps the result of `state` if `every_s` has passed. Calls `state` on every rank, so that it
  /// may gather; the root's bytes are kept. Returns whether they were.
  bool offer(const Communicator& communicator, const std::string& name, const std::function<Bytes()>& state);
  /// Collective. The same regardless of the time.
  void keep(const Communicator& communicator, const std::string& name, const std::function<Bytes()>& state);

  /// Seconds that this rank has spent on keeping states.
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
