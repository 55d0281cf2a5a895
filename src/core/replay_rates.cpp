#include <fmt/format.h>

#include <limits>
#include <utility>

#include "replay_internal.hpp"
#include "rondo/core/replay.hpp"

/// Rules 1 and 4: at which rate a transfer runs, and how long it keeps its links.
///
/// Where several sends without a number meet at a switch, the pairing is free, and a schedule is valid if
/// some pairing is: enough sends leave for each that enters, and each transfer includes a link as slow as its
/// rate (a bottleneck) - which is a question of maximum flow with one unit per transfer, found by augmenting
/// paths. With message costs or changing bandwidth not only the rate depends on the pairing: then sends need
/// numbers, and so do sums, whose content depends on it.
namespace rondo::replay_internal {
namespace {

class RateSetter {
 public:
  RateSetter(const Execution& execution, const Numbered& numbered, JoinedSends& transfers,
             FirstViolation& first)
      : execution_(execution),
        numbered_(numbered),
        transfers_(transfers),
        first_(first),
        seen_(execution.sends.size(), 0),
        carries_(execution.sends.size(), 0),
        via_(transfers.crossings.size(), 0),
        reached_(transfers.crossings.size(), 0) {
    transfers.rate_GBps.assign(execution.sends.size(), 0);
    transfers.duration_us.assign(execution.sends.size(), 0);
    if (execution.topology.has_bandwidth_steps())
      transfers.changes.assign(execution.sends.size(), JoinedSends::kNone);
    if (numbered.count() > 0) transfers.repeats.assign(execution.sends.size(), 0);
  }

  void run() {
    for (std::size_t k = 0; k < numbered_.count(); ++k) set_numbered(numbered_[k]);
    for (std::size_t s = 0; s < execution_.sends.size(); ++s) {
      if (!seen_[s]) set_unnumbered(s);
    }
  }

 private:
  const Send& send(std::size_t s) const { return execution_.sends[s]; }
  double bandwidth(std::size_t s) const { return execution_.link(s).bandwidth_GBps; }

  void set_numbered(std::span<const std::size_t> transfer) {
    const Send& head = send(transfer.front());
    double bytes = 0;
    for (const std::size_t s : transfer) {
      if (send(s).link == head.link) bytes += execution_.demand.bytes(send(s).chunk);
    }
    for (std::size_t i = 1; i < transfer.size(); ++i)
      transfers_.repeats[transfer[i]] = send(transfer[i]).link == send(transfer[i - 1]).link;
    // Other chunks go over the same links at the same times.
    collect(transfer.front());
    for (const std::size_t s : transfer) {
      if (send(s).chunk != head.chunk || seen_[s]) continue;
      first_.offer(send(s).start_us, 0, send(s), [&] {
        return fmt::format(
            "rule 4: {} has the number of link {} from {} us, but no cut-through switch joins the two",
            execution_.describe(s), head.link.value, head.start_us);
      });
    }
    for (const std::size_t s : transfer) seen_[s] = 1;
    set(transfer, bytes, head.rate_GBps);
    if (!head.has_rate()) return;
    for (const std::size_t s : transfer) check_fits(s);
  }

  /// Rule 1: the rate is at most the bandwidth, at every instant.
  void check_fits(std::size_t s) {
    const BandwidthStep constant{0, bandwidth(s)};
    std::span<const BandwidthStep> steps(execution_.link(s).bandwidth_steps);
    if (steps.empty()) steps = std::span(&constant, 1);
    const double start = send(s).start_us;
    const double end = start + transfers_.duration_us[s];
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const bool is_past = i + 1 < steps.size() && no_later(steps[i + 1].from_us, start);
      if (is_past || !is_above(send(s).rate_GBps, steps[i].GBps)) continue;
      if (i > 0 && no_later(end, steps[i].from_us)) return;
      const double since = std::max(start, steps[i].from_us);
      first_.offer(since, 0, send(s), [&] {
        return fmt::format("rule 1: {} runs at {} GB/s, but at {} us link {} has {} GB/s",
                           execution_.describe(s), send(s).rate_GBps, since, send(s).link.value,
                           steps[i].GBps);
      });
      return;
    }
  }

  /// All sends that crossings connect with `start`, which are marked as seen, in joined_; in roots_ those
  /// that leave no cut-through switch.
  void collect(std::size_t start) {
    joined_.assign(1, start);
    roots_.clear();
    several_ = false;
    seen_[start] = 1;
    for (std::size_t i = 0; i < joined_.size(); ++i) {
      const std::size_t s = joined_[i];
      if (transfers_.left[s] == JoinedSends::kNone) roots_.push_back(s);
      for (const std::int32_t id : {transfers_.entered[s], transfers_.left[s]}) {
        if (id == JoinedSends::kNone) continue;
        several_ = several_ || crossing(id).in.size() > 1;
        for (const auto* side : {&crossing(id).in, &crossing(id).out}) {
          for (const std::size_t other : *side) {
            if (std::exchange(seen_[other], 1) == 0) joined_.push_back(other);
          }
        }
      }
    }
  }

  void set_unnumbered(std::size_t start) {
    collect(start);
    if (several_) check_numbers_needed();
    if (roots_.size() > 1) check_bottlenecks();
    set(joined_, execution_.demand.bytes(send(start).chunk), std::numeric_limits<double>::quiet_NaN());
  }

  void check_numbers_needed() {
    const char* why = execution_.reduces(send(joined_.front()).chunk) ? "the chunk is a sum" : nullptr;
    for (const std::size_t s : joined_) {
      if (execution_.link(s).message_us > 0) why = "a link that they join has a message cost";
      if (!execution_.link(s).bandwidth_steps.empty()) why = "the bandwidth of a link that they join changes";
    }
    if (why == nullptr) return;
    const std::size_t s = *std::ranges::min_element(
        joined_, {}, [&](std::size_t i) { return std::tuple(send(i).start_us, send(i).link); });
    first_.offer(send(s).start_us, 0, send(s), [&] {
      return fmt::format(
          "rule 4: {} joins other sends of the chunk that enter a cut-through switch at one instant, and {}: "
          "such sends need transfer numbers",
          execution_.describe(s), why);
    });
  }

  /// Rule 1, for sends that are joined: rate (NaN: as fast as all their links are) and duration.
  void set(std::span<const std::size_t> joined, double bytes, double rate) {
    double message_us = 0;
    double least = kNever;
    bool changes = false;
    for (const std::size_t s : joined) {
      message_us = std::max(message_us, execution_.link(s).message_us);
      least = std::min(least, bandwidth(s));
      changes = changes || !execution_.link(s).bandwidth_steps.empty();
    }
    if (std::isnan(rate) && changes) {
      set_changing(joined, bytes, message_us);
      return;
    }
    if (std::isnan(rate)) rate = least;
    for (const std::size_t s : joined) {
      transfers_.rate_GBps[s] = rate;
      transfers_.duration_us[s] = message_us + transmission_us(bytes, rate);
    }
  }

  /// The least bandwidth at one time after the start, each link at its own time, until when it holds, and how
  /// far each link is in its steps.
  struct Least {
    double GBps;
    double until_us;
  };
  Least least_at(std::span<const std::size_t> joined, double offset_us,
                 std::vector<std::size_t>& step) const {
    Least least{kNever, kNever};
    for (std::size_t i = 0; i < joined.size(); ++i) {
      const auto& steps = execution_.link(joined[i]).bandwidth_steps;
      const double start = send(joined[i]).start_us;
      if (steps.empty()) {
        least.GBps = std::min(least.GBps, bandwidth(joined[i]));
        continue;
      }
      while (step[i] + 1 < steps.size() && steps[step[i] + 1].from_us - start <= offset_us) ++step[i];
      least.GBps = std::min(least.GBps, steps[step[i]].GBps);
      if (step[i] + 1 < steps.size())
        least.until_us = std::min(least.until_us, steps[step[i] + 1].from_us - start);
    }
    return least;
  }

  /// Bytes flow at the least bandwidth of each instant once the message cost has passed.
  void set_changing(std::span<const std::size_t> joined, double bytes, double message_us) {
    const Send& head = send(joined.front());
    std::vector<std::size_t> step(joined.size(), 0);
    std::vector<JoinedSends::Piece> pieces;
    double end = kNever;
    double left = bytes;
    double greatest = 0;
    for (double now = 0; end == kNever;) {
      const Least least = least_at(joined, now, step);
      const double flows_from = std::max(now, message_us);
      const double done = least.GBps > 0 ? flows_from + transmission_us(left, least.GBps) : kNever;
      // Where it is done just when the bandwidth changes, rounding decides whether the rest has to wait for
      // better times: either is right, and what the schedule says counts.
      const double until = head.start_us + least.until_us;
      const bool is_close =
          std::isfinite(done) && std::isfinite(until) && times_equal(head.start_us + done, until);
      if (is_close ? no_later(head.end_us, until) : done < least.until_us) end = done;
      const double to = std::min(end, least.until_us);
      if (to == kNever) break;
      if (least.GBps > 0) pieces.push_back({now, to, least.GBps});
      greatest = std::max(greatest, least.GBps);
      if (to > flows_from) left = std::max(0.0, left - (to - flows_from) * least.GBps * kBytesPerUsPerGBps);
      now = to;
    }
    for (const std::size_t s : joined) {
      transfers_.rate_GBps[s] = greatest;
      transfers_.duration_us[s] = end;
      transfers_.changes[s] = static_cast<std::int32_t>(transfers_.changing.size());
    }
    transfers_.changing.push_back(std::move(pieces));
  }

  /// Rule 4 where several transfers without numbers cross: each needs a bottleneck of its own.
  void check_bottlenecks() {
    for (const std::size_t root : roots_) {
      if (is_bottleneck(root) || transfers_.entered[root] == JoinedSends::kNone || augment(root)) continue;
      first_.offer(send(root).start_us, 4, send(root), [&] {
        return fmt::format(
            "rule 4: {} ends at {} us, although all links that its transfer can join are faster",
            execution_.describe(root), send(root).end_us);
      });
    }
  }

  bool is_bottleneck(std::size_t s) const {
    return times_equal(send(s).end_us, send(s).start_us + execution_.transmission_of(s, bandwidth(s)));
  }

  /// One more unit from `root` to a bottleneck that no other transfer uses; breadth first over crossings. A
  /// unit rests on the sends that carry it, one each, and ends at its bottleneck.
  bool augment(std::size_t root) {
    ++search_;
    std::vector<std::int32_t> queue{transfers_.entered[root]};
    reached_[index(queue.front())] = search_;
    const auto reach = [&](std::int32_t id, std::size_t s) {
      if (id == JoinedSends::kNone || std::exchange(reached_[index(id)], search_) == search_) return;
      via_[index(id)] = s;
      queue.push_back(id);
    };
    for (std::size_t i = 0; i < queue.size(); ++i) {
      const JoinedSends::Crossing& here = crossing(queue[i]);
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
  const JoinedSends::Crossing& crossing(std::int32_t id) const { return transfers_.crossings[index(id)]; }

  const Execution& execution_;
  const Numbered& numbered_;
  JoinedSends& transfers_;
  FirstViolation& first_;
  std::vector<std::size_t> joined_;
  std::vector<std::size_t> roots_;
  bool several_ = false;              ///< of joined_ enter a switch at one instant
  std::vector<char> seen_;            ///< per send
  std::vector<char> carries_;         ///< per send: a unit rests on it
  std::vector<std::size_t> via_;      ///< per crossing: the send by which the search came
  std::vector<std::size_t> reached_;  ///< per crossing: the last search that came there
  std::size_t search_ = 0;
};

}  // namespace

void set_rates(const Execution& execution, const Numbered& numbered, JoinedSends& transfers,
               FirstViolation& first) {
  RateSetter(execution, numbered, transfers, first).run();
}

}  // namespace rondo::replay_internal
