#include <fmt/format.h>

#include <limits>
#include <queue>
#include <utility>

#include "replay_internal.hpp"

/// Rules 2, 3, 5 (store-and-forward switches) and 7 for data that is only copied: one chunk at a time, in the
/// order of time, from the chunk's sources, which all hold the same.
///
/// A send happens only by what has happened before it. Arrivals are taken before the sends that start at the
/// same instant; a send that comes up before its cause (both within the tolerance) waits for it. So sends
/// that rest on each other in a circle never happen, however short they are.
namespace rondo::replay_internal {
namespace {

/// A chunk at a GPU or a store-and-forward switch.
struct NodeState {
  double held_us = kNever;            ///< GPU: from when
  bool by_arrival = false;            ///< GPU: it holds the chunk since one arrived
  std::vector<std::size_t> stays;     ///< switch: positions in Causality::stays, by arrival
  std::size_t sent_on = 0;            ///< switch: the first so many stays have been sent on
  std::vector<std::size_t> uncaused;  ///< sends whose start has passed without a cause
};

/// A send reaches its far end.
struct Landing {
  double time_us;
  std::size_t send;
  friend auto operator<=>(const Landing&, const Landing&) = default;
};

class Derivation {
 public:
  Derivation(const Execution& execution, const JoinedSends& transfers, FirstViolation& first,
             Causality& result)
      : execution_(execution),
        transfers_(transfers),
        first_(first),
        result_(result),
        at_(execution.topology.num_nodes()),
        happens_(execution.sends.size(), 0) {}

  void run() {
    for (std::size_t c = execution_.chunks.first; c < execution_.chunks.end; ++c) {
      if (!execution_.reduces(ChunkId(c))) derive(ChunkId(c));
    }
  }

 private:
  const Send& send(std::size_t s) const { return execution_.sends[s]; }
  NodeState& at(NodeId n) { return at_[n.index()]; }

  void derive(ChunkId c) {
    const Topology& topology = execution_.topology;
    const Contribution& contribution = execution_.demand.contribution(c);
    const std::span<const GpuId> sources = contribution.all_sources();
    const std::size_t end = execution_.end_of(c);
    std::size_t next = execution_.first_of(c);
    for (std::size_t i = 0; i < sources.size(); ++i)
      at(topology.node_of(sources[i])).held_us = contribution.ready_us_of(i);
    while (next < end || !landings_.empty() || !copies_.empty()) {
      const bool lands =
          !landings_.empty() && (next == end || no_later(landings_.top().time_us, send(next).start_us));
      const double now = lands ? landings_.top().time_us : next < end ? send(next).start_us : kNever;
      const bool is_late =
          !copies_.empty() && (now == kNever || !no_later(now, send(copies_.front()).start_us));
      if (is_late) {
        copy(copies_.front());
        copies_.pop();
      } else if (lands) {
        const std::size_t s = landings_.top().send;
        landings_.pop();
        land(s);
      } else {
        start(next++);
      }
    }
    find_uncaused(c);
    for (const GpuId g : execution_.demand.destinations(c)) deliver(c, g);
    for (const GpuId source : sources) reset(topology.node_of(source));
    for (std::size_t s = execution_.first_of(c); s < end; ++s) {
      reset(execution_.src(s));
      reset(execution_.dst(s));
    }
  }

  void reset(NodeId n) {
    NodeState& state = at(n);
    state.held_us = kNever;
    state.by_arrival = false;
    state.stays.clear();
    state.sent_on = 0;
    state.uncaused.clear();
  }

  void start(std::size_t s) {
    const NodeId n = execution_.src(s);
    if (execution_.is_cut_through(n)) return;  // happens as soon as its crossing is reached
    if (has_cause(s)) {
      happen(s);
      return;
    }
    at(n).uncaused.push_back(s);
    if (!execution_.topology.is_gpu(n) && execution_.topology.node(n).multicast) copies_.push(s);
  }

  /// Rules 2 and 3. At a store-and-forward switch the send takes what has arrived and was not sent on yet,
  /// oldest first: which arrival it takes does not matter to the bytes that wait, their number does.
  bool has_cause(std::size_t s) {
    const NodeId n = execution_.src(s);
    NodeState& state = at(n);
    if (execution_.topology.is_gpu(n))
      return state.held_us != kNever && no_later(state.held_us, send(s).start_us);
    if (state.sent_on == state.stays.size()) return false;
    take(state, state.sent_on++, s);
    return true;
  }

  void take(const NodeState& state, std::size_t stay, std::size_t s) {
    Stay& taken = result_.stays[state.stays[stay]];
    taken.to_us = std::max(taken.to_us, send(s).start_us);
  }

  /// When all has been sent on, a switch that may copy sends the last one again, which has then waited until
  /// now. Nothing empties the buffer sooner. It does so once nothing more arrives at that instant that has to
  /// be sent on.
  void copy(std::size_t s) {
    NodeState& state = at(execution_.src(s));
    if (happens_[s] || state.sent_on == 0) return;
    take(state, state.sent_on - 1, s);
    std::erase(state.uncaused, s);
    happen(s);
  }

  void happen(std::size_t s) {
    happens_[s] = 1;
    const bool cuts_through = execution_.is_cut_through(execution_.dst(s));
    const double enters_us = send(s).start_us + execution_.link(s).latency_us;
    landings_.push({cuts_through ? enters_us : send(s).arrival_us, s});
  }

  void land(std::size_t s) {
    const NodeId n = execution_.dst(s);
    if (execution_.is_cut_through(n)) {
      const std::int32_t id = transfers_.entered[s];
      if (id == JoinedSends::kNone) return;
      for (const std::size_t onward : transfers_.crossings[static_cast<std::size_t>(id)].out) {
        if (!happens_[onward]) happen(onward);
      }
      return;
    }
    NodeState& state = at(n);
    if (!execution_.topology.is_gpu(n)) {
      state.stays.push_back(result_.stays.size());
      result_.stays.push_back({s, send(s).arrival_us, send(s).arrival_us});
    } else if (state.held_us == kNever ||
               (!state.by_arrival && !no_later(state.held_us, send(s).arrival_us))) {
      state.held_us = send(s).arrival_us;
      state.by_arrival = true;
    }
    std::erase_if(state.uncaused, [&](std::size_t waiting) {
      if (!no_later(send(s).arrival_us, send(waiting).start_us) || !has_cause(waiting)) return false;
      happen(waiting);
      return true;
    });
  }

  void find_uncaused(ChunkId c) {
    for (std::size_t s = execution_.first_of(c); s < execution_.end_of(c); ++s) {
      if (!happens_[s]) blame(s);
      const NodeId n = execution_.dst(s);
      if (!execution_.is_switch(n, Forwarding::store_and_forward)) continue;
      // Each switch is looked at once: stays that were not sent on are cleared with the report.
      NodeState& state = at(n);
      for (; state.sent_on < state.stays.size(); ++state.sent_on) {
        const Stay& stay = result_.stays[state.stays[state.sent_on]];
        first_.offer(stay.from_us, 5, send(stay.send), [&] {
          return fmt::format(
              "rule 5: chunk {} arrives over link {} at switch {} at {} us and does not leave it", c.value,
              send(stay.send).link.value, n.value, stay.from_us);
        });
      }
    }
  }

  void blame(std::size_t s) {
    const NodeId n = execution_.src(s);
    if (execution_.topology.is_gpu(n)) {
      first_.offer(send(s).start_us, 2, send(s), [&] {
        const double held = at(n).held_us;
        const int gpu = execution_.topology.gpu_of(n).value;
        return fmt::format(
            "rule 2: {}, but GPU {} {}", execution_.describe(s), gpu,
            held == kNever ? "never holds the chunk" : fmt::format("holds the chunk only from {} us", held));
      });
    } else if (execution_.is_cut_through(n)) {
      first_.offer(send(s).start_us, 4, send(s), [&] {
        return fmt::format(
            "rule 4: {} leaves a cut-through switch, but no transfer from a GPU brings the chunk there",
            execution_.describe(s));
      });
    } else {
      first_.offer(send(s).start_us, 3, send(s), [&] {
        return fmt::format(
            "rule 3: {} leaves a store-and-forward switch, but no arrival of the chunk by then is left "
            "to be sent on",
            execution_.describe(s));
      });
    }
  }

  /// Rule 7.
  void deliver(ChunkId c, GpuId g) {
    const double held = at(execution_.topology.node_of(g)).held_us;
    if (held == kNever) {
      first_.offer(kNever, 7, {c, LinkId{}}, [&] {
        return fmt::format("rule 7: chunk {} never arrives at GPU {}, its destination", c.value, g.value);
      });
    } else {
      result_.serve(execution_.contribution_of(c), held);
    }
  }

  const Execution& execution_;
  const JoinedSends& transfers_;
  FirstViolation& first_;
  Causality& result_;
  std::vector<NodeState> at_;
  std::vector<char> happens_;       ///< per send
  std::queue<std::size_t> copies_;  ///< sends that a storing switch may have to copy, by start
  std::priority_queue<Landing, std::vector<Landing>, std::greater<>> landings_;
};

}  // namespace

void derive(const Execution& execution, const JoinedSends& transfers, FirstViolation& first,
            Causality& result) {
  Derivation(execution, transfers, first, result).run();
}

}  // namespace rondo::replay_internal
