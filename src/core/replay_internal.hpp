#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "rondo/core/chunk_range.hpp"
#include "rondo/core/collective.hpp"
#include "rondo/core/ids.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/core/replay_parts.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/core/topology.hpp"
#include "rondo/core/units.hpp"

/// The steps of the replay. Sends are named by their position in `Execution::sends`.
namespace rondo::replay_internal {

inline constexpr double kNever = std::numeric_limits<double>::infinity();

/// The greatest difference at which two times still count as equal.
inline double tolerance_us(double a_us, double b_us) {
  return 1e-6 + 1e-9 * std::max(std::abs(a_us), std::abs(b_us));
}

/// a <= b, within the tolerance; both finite.
inline bool no_later(double a_us, double b_us) {
  return a_us <= b_us + tolerance_us(a_us, b_us);
}

/// Whether a rate is above a bandwidth by more than rounding.
inline bool is_above(double rate_GBps, double bandwidth_GBps) {
  return rate_GBps > bandwidth_GBps * (1 + 1e-9);
}

/// Keeps the violation that comes first in time. Ties go to the lower rank (a rule's number; less for what
/// makes others break), then to the lower link and chunk, so that the answer does not depend on the order in
/// which the steps look at the sends.
class FirstViolation {
 public:
  /// `sentence` is called only when this violation comes before all others so far.
  template <class Sentence>
  void offer(double time_us, int rank, const Send& send, Sentence&& sentence) {
    Violation violation{time_us, rank, send.link, send.chunk};
    if (found_ && !(violation < *found_)) return;
    violation.sentence = sentence();
    found_ = std::move(violation);
  }
  const std::optional<Violation>& found() const { return found_; }

 private:
  std::optional<Violation> found_;
};

/// What all steps read: topology, demand, and all sends of some chunks sorted by chunk, then start, link,
/// end.
struct Execution {
  const Topology& topology;
  const Demand& demand;
  ChunkRange chunks;
  std::vector<Send> sends;
  std::vector<std::size_t> first_of_chunk;  ///< per chunk of `chunks`, and the end

  std::size_t first_of(ChunkId c) const { return first_of_chunk[c.index() - chunks.first]; }
  std::size_t end_of(ChunkId c) const { return first_of_chunk[c.index() - chunks.first + 1]; }
  const Link& link(std::size_t s) const { return topology.link(sends[s].link); }
  NodeId src(std::size_t s) const { return link(s).src; }
  NodeId dst(std::size_t s) const { return link(s).dst; }
  bool is_switch(NodeId n, Forwarding forwarding) const {
    const Node& node = topology.node(n);
    return node.kind == NodeKind::switch_ && node.forwarding == forwarding;
  }
  bool is_cut_through(NodeId n) const { return is_switch(n, Forwarding::cut_through); }
  std::size_t contribution_of(ChunkId c) const {
    return c.index() / static_cast<std::size_t>(demand.chunks_per_contribution());
  }
  bool reduces(ChunkId c) const { return demand.contribution(c).reduce; }
  /// The bytes of send s alone at `bandwidth_GBps`.
  double transmission_of(std::size_t s, double bandwidth_GBps) const {
    return transmission_us(demand.bytes(sends[s].chunk), bandwidth_GBps);
  }
  /// "chunk 3 over link 5 (node 1 -> node 2) from 10 us", and its transfer where that has a number.
  std::string describe(std::size_t s) const;
};

/// How sends join into transfers through cut-through switches (rules 4 and 5), and what they keep of their
/// links.
struct JoinedSends {
  static constexpr std::int32_t kNone = -1;

  /// The sends of one chunk that pass one cut-through switch at one instant: those of one number, or those
  /// without a number that last equally long. Of the latter several may enter; which of the leaving ones
  /// belongs to which is then free. Of the former several enter where the switch adds.
  struct Crossing {
    std::vector<std::size_t> in;
    std::vector<std::size_t> out;
  };
  std::vector<Crossing> crossings;
  std::vector<std::int32_t> entered;  ///< per send: the crossing at its far end, or kNone
  std::vector<std::int32_t> left;     ///< per send: the crossing at its near end, or kNone

  std::vector<double> rate_GBps;    ///< per send: r of rule 1, the greatest one where bandwidth changes
  std::vector<double> duration_us;  ///< per send: what rule 1 says of end - start; infinite: it never ends

  /// A rate during a part of a transfer, in times from its start on.
  struct Piece {
    double from_us;
    double to_us;
    double rate_GBps;
  };
  std::vector<std::vector<Piece>> changing;  ///< of transfers whose rate changes
  std::vector<std::int32_t> changes;         ///< per send: its position there, or kNone; empty: all kNone
  /// Per send: an earlier one of its number already stands for the transfer on its link; empty: none is so.
  std::vector<char> repeats;

  bool counts(std::size_t s) const { return repeats.empty() || repeats[s] == 0; }
};

/// Sends with numbers, by number, link and chunk: transfer k has sends[begin[k]] .. sends[begin[k + 1]].
struct Numbered {
  std::vector<std::size_t> sends;
  std::vector<std::size_t> begin;

  std::size_t count() const { return begin.size() - 1; }
  std::span<const std::size_t> operator[](std::size_t k) const {
    return std::span(sends).subspan(begin[k], begin[k + 1] - begin[k]);
  }
};

/// Groups the sends that have numbers: every link of a transfer carries the same chunks, each once, at one
/// time and at one rate.
Numbered check_numbers(const Execution& execution, FirstViolation& first);

/// Everything of JoinedSends but rates and durations.
JoinedSends find_crossings(const Execution& execution, FirstViolation& first);

/// Rates and durations (rule 1), and that the sends of a number join.
void set_rates(const Execution& execution, const Numbered& numbered, JoinedSends& transfers,
               FirstViolation& first);

/// A chunk waits in a store-and-forward switch.
struct Stay {
  std::size_t send;  ///< that brought it
  double from_us;    ///< its arrival
  double to_us;      ///< start of its last onward send
};

struct Causality {
  std::vector<Stay> stays = {};
  double finish_us = 0;
  std::vector<double> contribution_finish_us = {};  ///< one each

  void serve(std::size_t contribution, double at_us) {
    finish_us = std::max(finish_us, at_us);
    double& last_us = contribution_finish_us[contribution];
    last_us = std::max(last_us, at_us);
  }
};

/// Derives, from the sources, which sends can happen (rules 2, 3 and 5) and when every destination is served
/// (rule 7). Chunks that reduce are left to derive_sums.
void derive(const Execution& execution, const JoinedSends& transfers, FirstViolation& first,
            Causality& result);
/// The same for chunks that reduce, with what is added and replaced where (rules 9 and 10).
void derive_sums(const Execution& execution, const JoinedSends& transfers, FirstViolation& first,
                 Causality& result);

/// Rule 3: what waits in a store-and-forward switch fits its buffer.
void check_buffers(const Execution& execution, const std::vector<Stay>& stays, FirstViolation& first);
/// Rule 12: what GPUs only pass on fits their memory.
void check_relay_memory(const Execution& execution, FirstViolation& first);
/// Rules 1, 6 and 8: the rates on a link, and in a group, fit, and message costs do not overlap. `links` has
/// all links of a group or none, and all sends over them are there.
void check_bandwidth(const Execution& execution, const JoinedSends& transfers, std::span<const LinkId> links,
                     FirstViolation& first);

/// What keeps a send from being looked at any further, or nothing.
std::optional<std::string> malformed(const Topology& topology, const Demand& demand, const Send& send);

/// Positions of the sends, which are of `chunks`, grouped by chunk.
std::vector<std::uint32_t> positions_by_chunk(ChunkRange chunks, std::span<const Send> sends);
/// What is looked at together: the sends at `positions`, which are all of `chunks` by chunk, and are put in
/// the order of the execution.
Execution execution_of(const Topology& topology, const Demand& demand, ChunkRange chunks,
                       std::span<const Send> sends, std::span<std::uint32_t> positions);
/// All rules that speak of one chunk at a time, or of transfers with numbers.
JoinedSends execute_chunks(const Execution& execution, FirstViolation& first, Causality& causality);

std::vector<LinkId> all_links(const Topology& topology);

/// The replay of more sends than are looked at together, where the rules allow it.
inline constexpr std::size_t kMostAtOnce = 4 * ReplayOfChunks::kAtOnce;
ReplayResult replay_part_by_part(const Topology& topology, const Demand& demand, std::span<const Send> sends);

/// Positions of `count` items grouped by key: group k is order[begin[k]] .. order[begin[k + 1]].
struct Groups {
  std::vector<std::size_t> begin;
  std::vector<std::size_t> order;
  std::span<std::size_t> operator[](std::size_t k) {
    return std::span(order).subspan(begin[k], begin[k + 1] - begin[k]);
  }
};

template <class Key>
Groups group_by(std::size_t count, std::size_t num_keys, Key key) {
  Groups groups{std::vector<std::size_t>(num_keys + 1, 0), std::vector<std::size_t>(count)};
  for (std::size_t i = 0; i < count; ++i) ++groups.begin[key(i) + 1];
  for (std::size_t k = 0; k < num_keys; ++k) groups.begin[k + 1] += groups.begin[k];
  std::vector<std::size_t> next(groups.begin.begin(), groups.begin.end() - 1);
  for (std::size_t i = 0; i < count; ++i) groups.order[next[key(i)]++] = i;
  return groups;
}

}  // namespace rondo::replay_internal
