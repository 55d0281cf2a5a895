#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "rondo/core/collective.hpp"
#include "rondo/core/ids.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/core/topology.hpp"
#include "rondo/core/units.hpp"

/// The steps of the replay. Sends are named by their position in `Execution::sends`.
namespace rondo::replay_internal {

/// The greatest difference at which two times still count as equal.
inline double tolerance_us(double a_us, double b_us) {
  return 1e-6 + 1e-9 * std::max(std::abs(a_us), std::abs(b_us));
}

/// a <= b, within the tolerance; both finite.
inline bool no_later(double a_us, double b_us) {
  return a_us <= b_us + tolerance_us(a_us, b_us);
}

/// Keeps the violation that comes first in time. Ties go to the earlier rule of causality, then to the lower
/// link and chunk, so that the answer does not depend on the order in which the steps look at the sends.
class FirstViolation {
 public:
  /// `sentence` is called only when this violation comes before all others so far.
  template <class Sentence>
  void offer(double time_us, int rule, const Send& send, Sentence&& sentence) {
    const Key key{time_us, rule, send.link, send.chunk};
    if (found_ && !(key < key_)) return;
    key_ = key;
    found_ = sentence();
  }
  const std::optional<std::string>& found() const { return found_; }

 private:
  using Key = std::tuple<double, int, LinkId, ChunkId>;
  Key key_;
  std::optional<std::string> found_;
};

/// What all steps read: topology, demand, and the sends sorted by chunk, then start, link, end.
struct Execution {
  const Topology& topology;
  const Demand& demand;
  std::vector<Send> sends;
  std::vector<std::size_t>
      first_of_chunk;  ///< chunk c has the sends first_of_chunk[c] .. first_of_chunk[c + 1]

  NodeId src(std::size_t s) const { return topology.link(sends[s].link).src; }
  NodeId dst(std::size_t s) const { return topology.link(sends[s].link).dst; }
  bool is_switch(NodeId n, Forwarding forwarding) const {
    const Node& node = topology.node(n);
    return node.kind == NodeKind::switch_ && node.forwarding == forwarding;
  }
  bool is_cut_through(NodeId n) const { return is_switch(n, Forwarding::cut_through); }
  /// Time on the link when send s runs at `bandwidth_GBps`.
  double duration_us(std::size_t s, double bandwidth_GBps) const {
    return transmission_us(demand.bytes(sends[s].chunk), bandwidth_GBps);
  }
  /// "chunk 3 over link 5 (node 1 -> node 2) from 10 us"
  std::string describe(std::size_t s) const;
};

/// How sends join into transfers through cut-through switches (rules 4 and 5).
struct Transfers {
  static constexpr std::int32_t kNone = -1;

  /// The sends of one chunk that pass one cut-through switch at one instant and rate. Where several enter,
  /// which of the leaving ones belongs to which is free.
  struct Crossing {
    std::vector<std::size_t> in;
    std::vector<std::size_t> out;
  };
  std::vector<Crossing> crossings;
  std::vector<std::int32_t> entered;  ///< per send: the crossing at its far end, or kNone
  std::vector<std::int32_t> left;     ///< per send: the crossing at its near end, or kNone
  std::vector<double> rate_GBps;      ///< per send: r of rule 1
};

Transfers join_transfers(const Execution& execution, FirstViolation& first);

/// A chunk waits in a store-and-forward switch.
struct Stay {
  std::size_t send;  ///< that brought it
  double from_us;    ///< its arrival
  double to_us;      ///< start of its last onward send
};

struct Causality {
  std::vector<Stay> stays;
  double finish_us = 0;
};

/// Derives, from the origins, which sends can happen (rules 2, 3 and 5) and when every destination is served
/// (rule 7).
Causality derive(const Execution& execution, const Transfers& transfers, FirstViolation& first);

}  // namespace rondo::replay_internal
