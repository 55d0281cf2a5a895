#include <fmt/format.h>

#include <utility>

#include "replay_internal.hpp"
#include "rondo/core/replay.hpp"

/// Rules 4 and 5 at cut-through switches.
///
/// The sends of a chunk that enter and leave a switch at one instant form a crossing: those of one transfer
/// number, or those without a number that run at one rate. As a rule one send enters and the transfer is
/// plain. Where several of one number enter, the switch adds them up.
namespace rondo::replay_internal {
namespace {

/// A send at a cut-through switch: it enters, or it leaves.
struct Passage {
  std::int32_t transfer;
  NodeId node;
  double time_us;
  bool leaves;
  std::size_t send;
};

/// A crossing on the way of a transfer to a switch: whether it has been added up since, and whether it has
/// come to that switch since already.
struct PassedBefore {
  std::size_t crossing;
  bool added;
  bool came_down;
  friend bool operator==(const PassedBefore&, const PassedBefore&) = default;
};

class Crosser {
 public:
  Crosser(const Execution& execution, FirstViolation& first) : execution_(execution), first_(first) {
    transfers_.entered.assign(execution.sends.size(), JoinedSends::kNone);
    transfers_.left.assign(execution.sends.size(), JoinedSends::kNone);
  }

  JoinedSends run() {
    for (std::size_t c = execution_.chunks.first; c < execution_.chunks.end; ++c) {
      const std::size_t first = transfers_.crossings.size();
      cross(ChunkId(c));
      for (std::size_t id = first; id < transfers_.crossings.size(); ++id) check_way_to(id);
    }
    return std::move(transfers_);
  }

 private:
  const Send& send(std::size_t s) const { return execution_.sends[s]; }

  double enters_us(std::size_t s) const { return send(s).start_us + execution_.link(s).latency_us; }

  void cross(ChunkId c) {
    passages_.clear();
    for (std::size_t s = execution_.first_of(c); s < execution_.end_of(c); ++s) {
      const NodeId src = execution_.src(s);
      const NodeId dst = execution_.dst(s);
      const std::int32_t transfer = send(s).transfer;
      if (execution_.is_cut_through(src)) passages_.push_back({transfer, src, send(s).start_us, true, s});
      if (execution_.is_cut_through(dst)) passages_.push_back({transfer, dst, enters_us(s), false, s});
    }
    std::sort(passages_.begin(), passages_.end(), [](const Passage& a, const Passage& b) {
      return std::tie(a.node, a.transfer, a.time_us, a.leaves, a.send) <
             std::tie(b.node, b.transfer, b.time_us, b.leaves, b.send);
    });
    for (std::size_t i = 0, begin = 0; i < passages_.size(); ++i) {
      const bool last = i + 1 == passages_.size() || passages_[i + 1].node != passages_[i].node ||
                        passages_[i + 1].transfer != passages_[i].transfer ||
                        !times_equal(passages_[i].time_us, passages_[i + 1].time_us);
      if (!last) continue;
      cross_at_instant(std::span(passages_).subspan(begin, i + 1 - begin));
      begin = i + 1;
    }
  }

  /// `passages`, by time, are those of one chunk, switch and number that follow each other within the
  /// tolerance.
  void cross_at_instant(std::span<const Passage> passages) {
    JoinedSends::Crossing all;
    for (const Passage& p : passages) (p.leaves ? all.out : all.in).push_back(p.send);
    check_instants(passages);
    if (all.in.size() <= 1 || passages.front().transfer != kNoTransfer) {
      add(passages.front(), std::move(all));
      return;
    }
    // Joined sends run at one rate, hence take equally long: only those can belong together.
    std::vector<Passage> by_duration(passages.begin(), passages.end());
    const auto duration_us = [&](const Passage& p) { return send(p.send).end_us - send(p.send).start_us; };
    std::sort(by_duration.begin(), by_duration.end(), [&](const Passage& a, const Passage& b) {
      return std::tuple(duration_us(a), a.send) < std::tuple(duration_us(b), b.send);
    });
    JoinedSends::Crossing crossing;
    for (std::size_t i = 0; i < by_duration.size(); ++i) {
      const Passage& p = by_duration[i];
      (p.leaves ? crossing.out : crossing.in).push_back(p.send);
      if (i + 1 < by_duration.size()) {
        const double both_ends_us = 2 * tolerance_us(send(p.send).end_us, send(p.send).start_us);
        if (duration_us(by_duration[i + 1]) - duration_us(p) <= both_ends_us) continue;
      }
      add(p, std::exchange(crossing, {}));
    }
  }

  /// Rule 4: each leaving send starts when one enters, not merely close to others that do. What is added up
  /// enters at one instant.
  void check_instants(std::span<const Passage> passages) {
    std::vector<double> entering_us;
    for (const Passage& p : passages) {
      if (!p.leaves) entering_us.push_back(p.time_us);
    }
    if (entering_us.empty()) return;
    const bool is_numbered = passages.front().transfer != kNoTransfer;
    for (const Passage& p : passages) {
      if (!p.leaves) {
        if (!is_numbered || times_equal(p.time_us, entering_us.front())) continue;
        first_.offer(send(p.send).start_us, 4, send(p.send), [&] {
          return fmt::format("rule 4: {} enters switch {} at {} us, other sends of its transfer do at {} us",
                             execution_.describe(p.send), p.node.value, p.time_us, entering_us.front());
        });
        continue;
      }
      const auto next = std::lower_bound(entering_us.begin(), entering_us.end(), p.time_us);
      const bool meets_next = next != entering_us.end() && times_equal(*next, p.time_us);
      const bool meets_previous = next != entering_us.begin() && times_equal(*(next - 1), p.time_us);
      if (!meets_next && !meets_previous) nothing_enters(p.send);
    }
  }

  void nothing_enters(std::size_t s) {
    first_.offer(send(s).start_us, 4, send(s), [&] {
      return fmt::format(
          "rule 4: {} to {} us leaves a cut-through switch, but no send of the {} enters there "
          "at that instant and rate",
          execution_.describe(s), send(s).end_us, send(s).transfer == kNoTransfer ? "chunk" : "transfer");
    });
  }

  /// Rules 5 and 10, and the crossing itself; `at` is one of its passages.
  void add(const Passage& at, JoinedSends::Crossing crossing) {
    if (crossing.in.empty()) {
      for (const std::size_t s : crossing.out) nothing_enters(s);
      return;
    }
    const bool adds = at.transfer != kNoTransfer && crossing.in.size() > 1;
    if (adds) check_addition(at.node, crossing.in);
    const bool multicast = execution_.topology.node(at.node).multicast;
    const std::size_t entering = adds ? 1 : crossing.in.size();
    const bool enough = crossing.out.size() >= entering;
    const bool too_many = !multicast && crossing.out.size() > entering;
    if (!enough || too_many) {
      const std::size_t s = crossing.in.front();
      first_.offer(at.time_us, 5, send(s), [&] {
        return fmt::format(
            "rule 5: chunk {} enters switch {} at {} us on {} link(s) (link {}) and leaves it on {}; "
            "the switch {}",
            send(s).chunk.value, at.node.value, at.time_us, crossing.in.size(), send(s).link.value,
            crossing.out.size(),
            multicast ? "sends on everything that enters" : "cannot multicast: one out for one in");
      });
    }
    const auto id = static_cast<std::int32_t>(transfers_.crossings.size());
    for (const std::size_t s : crossing.in) transfers_.entered[s] = id;
    for (const std::size_t s : crossing.out) transfers_.left[s] = id;
    transfers_.crossings.push_back(std::move(crossing));
  }

  /// Rule 4: a transfer comes to no switch twice, unless it is a sum for several GPUs that comes down again
  /// from where it was added up. Where several sends without a number enter, which of them goes on is free,
  /// and nothing is told of those before.
  void check_way_to(std::size_t id) {
    const std::vector<std::size_t>& entering = transfers_.crossings[id].in;
    const auto begins_there = [&](std::size_t s) { return transfers_.left[s] == JoinedSends::kNone; };
    if (std::ranges::all_of(entering, begins_there)) return;
    const NodeId node = execution_.dst(entering.front());
    const Contribution& whole = execution_.demand.contribution(send(entering.front()).chunk);
    const bool may_come_down = whole.reduce && whole.destinations.size() > 1;
    std::vector<PassedBefore> seen;
    std::vector<PassedBefore> open{{id, false, false}};
    while (!open.empty()) {
      const PassedBefore after = open.back();
      open.pop_back();
      const std::vector<std::size_t>& in = transfers_.crossings[after.crossing].in;
      if (in.size() > 1 && send(in.front()).transfer == kNoTransfer) continue;
      for (const std::size_t s : in) {
        if (begins_there(s)) continue;
        PassedBefore before = after;
        before.crossing = static_cast<std::size_t>(transfers_.left[s]);
        const std::size_t first = transfers_.crossings[before.crossing].in.front();
        if (send(first).op == SendOp::reduce) before.added = true;
        // A circle without latency supports nothing.
        if (execution_.dst(first) == node && !times_equal(enters_us(first), enters_us(entering.front()))) {
          if (!may_come_down || !before.added || before.came_down) {
            comes_once_more(entering.front());
            continue;
          }
          before.came_down = true;
        }
        if (std::ranges::find(seen, before) != seen.end()) continue;
        seen.push_back(before);
        open.push_back(before);
      }
    }
  }

  void comes_once_more(std::size_t s) {
    first_.offer(send(s).start_us, 4, send(s), [&] {
      return fmt::format("rule 4: {} brings the chunk to switch {} once more, which its transfer has passed",
                         execution_.describe(s), execution_.dst(s).value);
    });
  }

  /// Rule 10: several sends of one transfer enter a switch only to be added up there.
  void check_addition(NodeId node, std::span<const std::size_t> entering) {
    for (const std::size_t s : entering) {
      const char* why = !execution_.reduces(send(s).chunk)       ? "the chunk is no sum"
                        : !execution_.topology.node(node).reduce ? "the switch may not add"
                        : send(s).op != SendOp::reduce           ? "its op is copy (0), not reduce (1)"
                                                                 : nullptr;
      if (why == nullptr) continue;
      first_.offer(send(s).start_us, 0, send(s), [&] {
        return fmt::format("rule 10: {} enters switch {} with {} other send(s) of its transfer, but {}",
                           execution_.describe(s), node.value, entering.size() - 1, why);
      });
    }
  }

  const Execution& execution_;
  FirstViolation& first_;
  JoinedSends transfers_;
  std::vector<Passage> passages_;
};

}  // namespace

JoinedSends find_crossings(const Execution& execution, FirstViolation& first) {
  return Crosser(execution, first).run();
}

}  // namespace rondo::replay_internal
