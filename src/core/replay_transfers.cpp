#include <fmt/format.h>

#include <utility>

#include "replay_internal.hpp"
#include "rondo/core/replay.hpp"

/// Rules 4 and 5 at cut-through switches.
///
/// The sends of a chunk that enter and leave a switch at one instant and rate form a crossing. As a rule one
/// send enters and the transfer is plain. Where several enter, the pairing is free, and a schedule is valid
/// if some pairing is: enough sends leave for each that enters, and each transfer includes a link as slow as
/// its rate (a bottleneck) - which is a question of maximum flow with one unit per transfer, found by
/// augmenting paths.
namespace rondo::replay_internal {
namespace {

/// A send at a cut-through switch: it enters, or it leaves.
struct Passage {
  NodeId node;
  double time_us;
  bool leaves;
  std::size_t send;
};

class Joiner {
 public:
  Joiner(const Execution& execution, FirstViolation& first) : execution_(execution), first_(first) {
    const std::size_t n = execution.sends.size();
    transfers_.entered.assign(n, Transfers::kNone);
    transfers_.left.assign(n, Transfers::kNone);
    transfers_.rate_GBps.reserve(n);
    for (const Send& send : execution.sends) {
      transfers_.rate_GBps.push_back(execution.topology.link(send.link).bandwidth_GBps);
    }
  }

  Transfers run() {
    for (std::size_t c = 0; c < execution_.demand.num_chunks(); ++c) cross(ChunkId(c));
    seen_.assign(execution_.sends.size(), 0);
    carries_.assign(execution_.sends.size(), 0);
    via_.assign(transfers_.crossings.size(), 0);
    reached_.assign(transfers_.crossings.size(), 0);
    for (const Transfers::Crossing& crossing : transfers_.crossings) {
      if (!seen_[crossing.in.front()]) set_rate(crossing.in.front());
    }
    return std::move(transfers_);
  }

 private:
  const Send& send(std::size_t s) const { return execution_.sends[s]; }

  void cross(ChunkId c) {
    passages_.clear();
    for (std::size_t s = execution_.first_of_chunk[c.index()]; s < execution_.first_of_chunk[c.index() + 1];
         ++s) {
      const NodeId src = execution_.src(s);
      const NodeId dst = execution_.dst(s);
      const double enters_us = send(s).start_us + execution_.topology.link(send(s).link).latency_us;
      if (execution_.is_cut_through(src)) passages_.push_back({src, send(s).start_us, true, s});
      if (execution_.is_cut_through(dst)) passages_.push_back({dst, enters_us, false, s});
    }
    std::sort(passages_.begin(), passages_.end(), [](const Passage& a, const Passage& b) {
      return std::tie(a.node, a.time_us, a.leaves, a.send) < std::tie(b.node, b.time_us, b.leaves, b.send);
    });
    for (std::size_t i = 0, begin = 0; i < passages_.size(); ++i) {
      const bool last = i + 1 == passages_.size() || passages_[i + 1].node != passages_[i].node ||
                        !times_equal(passages_[i].time_us, passages_[i + 1].time_us);
      if (!last) continue;
      cross_at_instant(std::span(passages_).subspan(begin, i + 1 - begin));
      begin = i + 1;
    }
  }

  /// `passages`, by time, are those of one chunk and switch that follow each other within the tolerance.
  void cross_at_instant(std::span<const Passage> passages) {
    Transfers::Crossing all;
    for (const Passage& p : passages) (p.leaves ? all.out : all.in).push_back(p.send);
    check_instants(passages);
    const NodeId node = passages.front().node;
    if (all.in.size() <= 1) {
      add(node, passages.front().time_us, std::move(all));
      return;
    }
    // Joined sends run at one rate, hence take equally long: only those can belong together.
    std::vector<Passage> by_duration(passages.begin(), passages.end());
    const auto duration_us = [&](const Passage& p) { return send(p.send).end_us - send(p.send).start_us; };
    std::sort(by_duration.begin(), by_duration.end(), [&](const Passage& a, const Passage& b) {
      return std::tuple(duration_us(a), a.send) < std::tuple(duration_us(b), b.send);
    });
    Transfers::Crossing crossing;
    for (std::size_t i = 0; i < by_duration.size(); ++i) {
      const Passage& p = by_duration[i];
      (p.leaves ? crossing.out : crossing.in).push_back(p.send);
      if (i + 1 < by_duration.size()) {
        const double both_ends_us = 2 * tolerance_us(send(p.send).end_us, send(p.send).start_us);
        if (duration_us(by_duration[i + 1]) - duration_us(p) <= both_ends_us) continue;
      }
      add(node, p.time_us, std::exchange(crossing, {}));
    }
  }

  /// Rule 4: each leaving send starts when one enters, not merely close to others that do.
  void check_instants(std::span<const Passage> passages) {
    std::vector<double> entering_us;
    for (const Passage& p : passages) {
      if (!p.leaves) entering_us.push_back(p.time_us);
    }
    if (entering_us.empty()) return;
    for (const Passage& p : passages) {
      if (!p.leaves) continue;
      const auto next = std::lower_bound(entering_us.begin(), entering_us.end(), p.time_us);
      const bool meets_next = next != entering_us.end() && times_equal(*next, p.time_us);
      const bool meets_previous = next != entering_us.begin() && times_equal(*(next - 1), p.time_us);
      if (!meets_next && !meets_previous) nothing_enters(p.send);
    }
  }

  void nothing_enters(std::size_t s) {
    first_.offer(send(s).start_us, 4, send(s), [&] {
      return fmt::format(
          "rule 4: {} to {} us leaves a cut-through switch, but no send of the chunk enters there "
          "at that instant and rate",
          execution_.describe(s), send(s).end_us);
    });
  }

  /// Rule 5, and the crossing itself.
  void add(NodeId node, double time_us, Transfers::Crossing crossing) {
    if (crossing.in.empty()) {
      for (const std::size_t s : crossing.out) nothing_enters(s);
      return;
    }
    const bool multicast = execution_.topology.node(node).multicast;
    const bool enough = crossing.out.size() >= crossing.in.size();
    const bool too_many = !multicast && crossing.out.size() > crossing.in.size();
    if (!enough || too_many) {
      const std::size_t s = crossing.in.front();
      first_.offer(time_us, 5, send(s), [&] {
        return fmt::format(
            "rule 5: chunk {} enters switch {} at {} us on {} link(s) (link {}) and leaves it on {}; "
            "the switch {}",
            send(s).chunk.value, node.value, time_us, crossing.in.size(), send(s).link.value,
            crossing.out.size(),
            multicast ? "sends on everything that enters" : "cannot multicast: one out for one in");
      });
    }
    const auto id = static_cast<std::int32_t>(transfers_.crossings.size());
    for (const std::size_t s : crossing.in) transfers_.entered[s] = id;
    for (const std::size_t s : crossing.out) transfers_.left[s] = id;
    transfers_.crossings.push_back(std::move(crossing));
  }

  /// Gives all sends that crossings connect with `start` their rate, the least bandwidth among them.
  void set_rate(std::size_t start) {
    std::vector<std::size_t> joined{start};
    std::vector<std::size_t> roots;
    seen_[start] = 1;
    double rate = transfers_.rate_GBps[start];
    for (std::size_t i = 0; i < joined.size(); ++i) {
      const std::size_t s = joined[i];
      rate = std::min(rate, transfers_.rate_GBps[s]);
      if (transfers_.left[s] == Transfers::kNone) roots.push_back(s);
      for (const std::int32_t id : {transfers_.entered[s], transfers_.left[s]}) {
        if (id == Transfers::kNone) continue;
        for (const auto* side : {&crossing(id).in, &crossing(id).out}) {
          for (const std::size_t other : *side) {
            if (std::exchange(seen_[other], 1) == 0) joined.push_back(other);
          }
        }
      }
    }
    if (roots.size() > 1) check_bottlenecks(roots);
    for (const std::size_t s : joined) transfers_.rate_GBps[s] = rate;
  }

  /// Rule 4 where several transfers cross: each needs a bottleneck of its own. `rate_GBps` still holds
  /// bandwidths here.
  void check_bottlenecks(const std::vector<std::size_t>& roots) {
    for (const std::size_t root : roots) {
      if (is_bottleneck(root) || transfers_.entered[root] == Transfers::kNone || augment(root)) continue;
      first_.offer(send(root).start_us, 4, send(root), [&] {
        return fmt::format(
            "rule 4: {} ends at {} us, although all links that its transfer can join are faster",
            execution_.describe(root), send(root).end_us);
      });
    }
  }

  bool is_bottleneck(std::size_t s) const {
    return times_equal(send(s).end_us, send(s).start_us + execution_.duration_us(s, transfers_.rate_GBps[s]));
  }

  /// One more unit from `root` to a bottleneck that no other transfer uses; breadth first over crossings. A
  /// unit rests on the sends that carry it, one each, and ends at its bottleneck.
  bool augment(std::size_t root) {
    ++search_;
    std::vector<std::int32_t> queue{transfers_.entered[root]};
    reached_[index(queue.front())] = search_;
    const auto reach = [&](std::int32_t id, std::size_t s) {
      if (id == Transfers::kNone || std::exchange(reached_[index(id)], search_) == search_) return;
      via_[index(id)] = s;
      queue.push_back(id);
    };
    for (std::size_t i = 0; i < queue.size(); ++i) {
      const Transfers::Crossing& here = crossing(queue[i]);
      for (const std::size_t s : here.out) {
        if (carries_[s]) continue;
        if (is_bottleneck(s)) {
          shift_units(queue.front(), queue[i], s);
          return true;
        }
        reach(transfers_.entered[s], s);
      }
      for (const std::size_t s : here.in) {
        if (carries_[s] && !is_bottleneck(s)) reach(transfers_.left[s], s);
      }
    }
    return false;
  }

  void shift_units(std::int32_t from, std::int32_t to, std::size_t bottleneck) {
    carries_[bottleneck] = 1;
    while (to != from) {
      const std::size_t s = via_[index(to)];
      carries_[s] = !carries_[s];
      to = transfers_.entered[s] == to ? transfers_.left[s] : transfers_.entered[s];
    }
  }

  static std::size_t index(std::int32_t id) { return static_cast<std::size_t>(id); }
  const Transfers::Crossing& crossing(std::int32_t id) const { return transfers_.crossings[index(id)]; }

  const Execution& execution_;
  FirstViolation& first_;
  Transfers transfers_;
  std::vector<Passage> passages_;
  std::vector<char> seen_;            ///< per send
  std::vector<char> carries_;         ///< per send: a unit rests on it
  std::vector<std::size_t> via_;      ///< per crossing: the send by which the search came
  std::vector<std::size_t> reached_;  ///< per crossing: the last search that came there
  std::size_t search_ = 0;
};

}  // namespace

Transfers join_transfers(const Execution& execution, FirstViolation& first) {
  return Joiner(execution, first).run();
}

}  // namespace rondo::replay_internal
