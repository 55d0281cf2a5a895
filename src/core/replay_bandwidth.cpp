#include <fmt/format.h>

#include <limits>
#include <utility>

#include "replay_internal.hpp"

/// What is used at one time: the bandwidth of links and groups (rules 1 and 6), message costs (rule 8) and
/// buffers (rule 3).
namespace rondo::replay_internal {
namespace {

/// A send keeps a rate during [from, to).
struct Flow {
  double from_us;
  double to_us;
  double rate_GBps;
  std::size_t send;
};

/// Whether the send stands for its transfer on its link; one that never ends is refused elsewhere.
bool stands(const JoinedSends& transfers, std::size_t s) {
  return transfers.counts(s) && std::isfinite(transfers.duration_us[s]);
}

void add_flows(const Execution& execution, const JoinedSends& transfers, std::size_t s,
               std::vector<Flow>& flows) {
  const double start = execution.sends[s].start_us;
  if (!stands(transfers, s)) return;
  if (transfers.changes.empty() || transfers.changes[s] == JoinedSends::kNone) {
    flows.push_back({start, start + transfers.duration_us[s], transfers.rate_GBps[s], s});
    return;
  }
  for (const auto& piece : transfers.changing[static_cast<std::size_t>(transfers.changes[s])])
    flows.push_back({start + piece.from_us, start + piece.to_us, piece.rate_GBps, s});
}

/// More bytes came than the capacity could take.
struct Excess {
  double since_us;
  std::size_t send;   ///< started last
  std::size_t other;  ///< of those in use then, the one that ends last
  double until_us;
  double rate_GBps;
  double capacity_GBps;
};

class Backlog {
 public:
  /// `capacity` ascends from 0. Sorts the flows.
  Backlog(std::vector<Flow>& flows, std::span<const BandwidthStep> capacity)
      : flows_(flows), capacity_(capacity) {
    std::erase_if(flows_, [](const Flow& f) { return !(f.to_us > f.from_us); });
    std::sort(flows_.begin(), flows_.end(), [](const Flow& a, const Flow& b) {
      return std::tie(a.from_us, a.to_us, a.send) < std::tie(b.from_us, b.to_us, b.send);
    });
    by_end_ = flows_;
    std::sort(by_end_.begin(), by_end_.end(), [](const Flow& a, const Flow& b) {
      return std::tie(a.to_us, a.from_us, a.send) < std::tie(b.to_us, b.from_us, b.send);
    });
  }

  /// Bytes queue up while rates sum to more than the capacity, and drain while they sum to less. Returns the
  /// first excess over what the greatest capacity carries within the tolerance.
  std::optional<Excess> first_excess() {
    const double greatest = std::ranges::max(capacity_, {}, &BandwidthStep::GBps).GBps;
    double now = 0;
    double sum = 0;
    double backlog = 0;
    for (std::size_t started = 0, ended = 0, step = 0; ended < flows_.size();) {
      double next = by_end_[ended].to_us;
      if (started < flows_.size()) next = std::min(next, flows_[started].from_us);
      if (step + 1 < capacity_.size()) next = std::min(next, capacity_[step + 1].from_us);
      backlog = std::max(0.0, backlog + (sum - capacity_[step].GBps) * (next - now));
      if (backlog > greatest * tolerance_us(next, next)) return excess(started, now, step, sum);
      now = next;
      for (; ended < by_end_.size() && by_end_[ended].to_us <= now; ++ended) sum -= by_end_[ended].rate_GBps;
      if (step + 1 < capacity_.size() && capacity_[step + 1].from_us <= now) ++step;
      if (ended == started) sum = 0;  // nothing is in use: drop what rounding has left
      for (; started < flows_.size() && flows_[started].from_us <= now; ++started)
        sum += flows_[started].rate_GBps;
    }
    return std::nullopt;
  }

 private:
  Excess excess(std::size_t started, double now, std::size_t step, double sum) const {
    const Flow* last = nullptr;
    for (std::size_t i = 0; i < started; ++i) {
      if (flows_[i].to_us > now) last = &flows_[i];
    }
    const Flow* other = nullptr;
    for (std::size_t i = 0; i < started; ++i) {
      const bool in_use = flows_[i].to_us > now && &flows_[i] != last;
      if (in_use && (other == nullptr || flows_[i].to_us > other->to_us)) other = &flows_[i];
    }
    if (other == nullptr) other = last;
    const double since = std::max(last->from_us, capacity_[step].from_us);
    return {since, last->send, other->send, other->to_us, sum, capacity_[step].GBps};
  }

  std::vector<Flow>& flows_;
  std::span<const BandwidthStep> capacity_;
  std::vector<Flow> by_end_;
};

/// Whether the sends of a link, by start, follow one another. Overlaps within the tolerance add up as long as
/// there is no pause: any number of sends that are each shorter than the tolerance must not share an instant.
bool follow_one_another(const Execution& execution, const JoinedSends& transfers,
                        std::span<const std::size_t> on_link) {
  double busy_until = 0;
  for (const std::size_t s : on_link) {
    if (!stands(transfers, s)) continue;
    const double start = execution.sends[s].start_us;
    if (busy_until > start && !no_later(busy_until, start)) return false;
    busy_until = std::max(busy_until, start) + transfers.duration_us[s];
  }
  return true;
}

void check_link(const Execution& execution, const JoinedSends& transfers, const Link& link,
                std::span<const std::size_t> on_link, FirstViolation& first) {
  if (follow_one_another(execution, transfers, on_link)) return;  // each fits alone
  std::vector<Flow> flows;
  for (const std::size_t s : on_link) add_flows(execution, transfers, s, flows);
  const BandwidthStep constant{0, link.bandwidth_GBps};
  const std::span<const BandwidthStep> steps(link.bandwidth_steps);
  const auto excess = Backlog(flows, steps.empty() ? std::span(&constant, 1) : steps).first_excess();
  if (!excess) return;
  first.offer(excess->since_us, 1, execution.sends[excess->send], [&] {
    return fmt::format(
        "rule 1: {} starts while the link is occupied until {} us by chunk {}: the rates sum to {} GB/s at "
        "{} us, its bandwidth is {} GB/s",
        execution.describe(excess->send), excess->until_us, execution.sends[excess->other].chunk.value,
        excess->rate_GBps, excess->since_us, excess->capacity_GBps);
  });
}

/// Rule 8: the first message_us of different transfers do not overlap.
void check_messages(const Execution& execution, const JoinedSends& transfers, const Link& link,
                    std::span<const std::size_t> on_link, FirstViolation& first) {
  if (link.message_us == 0) return;
  double busy_until = 0;
  std::size_t by = 0;
  for (const std::size_t s : on_link) {
    if (!stands(transfers, s)) continue;
    const double start = execution.sends[s].start_us;
    if (!no_later(busy_until, start)) {
      first.offer(start, 8, execution.sends[s], [&] {
        return fmt::format("rule 8: {} starts while the message cost of chunk {} keeps the link until {} us",
                           execution.describe(s), execution.sends[by].chunk.value, busy_until);
      });
    }
    busy_until = std::max(busy_until, start) + link.message_us;
    by = s;
  }
}

/// Rule 6, for one group.
void check_group(const Execution& execution, const JoinedSends& transfers, const SharedBandwidth& group,
                 const auto& on_link, FirstViolation& first) {
  std::vector<Flow> flows;
  for (const LinkId l : group.links) {
    for (const std::size_t s : on_link(l)) add_flows(execution, transfers, s, flows);
  }
  const BandwidthStep constant{0, group.bandwidth_GBps};
  const auto excess = Backlog(flows, std::span(&constant, 1)).first_excess();
  if (!excess) return;
  first.offer(excess->since_us, 6, execution.sends[excess->send], [&] {
    return fmt::format("rule 6: {} brings the links of '{}' to {} GB/s; they share {} GB/s",
                       execution.describe(excess->send), group.name, excess->rate_GBps, group.bandwidth_GBps);
  });
}

/// Bytes wait during [from, to).
struct Wait {
  double from_us;
  double to_us;
  double bytes;
  std::size_t send;
};

/// Calls `exceeds(wait, sum)` for each wait at whose start the bytes that wait sum to more than `limit`. What
/// overlaps by no more than the tolerance does not count as overlapping.
template <class Exceeds>
void sweep(std::vector<Wait> waits, double limit, Exceeds exceeds) {
  const auto ends_us = [](const Wait& wait) { return wait.to_us - tolerance_us(wait.to_us, wait.to_us); };
  std::erase_if(waits, [&](const Wait& wait) { return ends_us(wait) <= wait.from_us; });
  std::sort(waits.begin(), waits.end(), [](const Wait& a, const Wait& b) {
    return std::tie(a.from_us, a.to_us, a.send) < std::tie(b.from_us, b.to_us, b.send);
  });
  std::vector<Wait> by_end = waits;
  std::sort(by_end.begin(), by_end.end(), [](const Wait& a, const Wait& b) {
    return std::tie(a.to_us, a.from_us, a.send) < std::tie(b.to_us, b.from_us, b.send);
  });
  double sum = 0;
  std::size_t over = 0;
  for (std::size_t i = 0; i < waits.size(); ++i) {
    for (; over < i && ends_us(by_end[over]) <= waits[i].from_us; ++over) sum -= by_end[over].bytes;
    if (over == i) sum = 0;  // nothing waits: drop what rounding has left
    sum += waits[i].bytes;
    if (is_above(sum, limit)) exceeds(waits[i], sum);
  }
}

}  // namespace

void check_buffers(const Execution& execution, const std::vector<Stay>& stays, FirstViolation& first) {
  Groups at_node = group_by(stays.size(), execution.topology.num_nodes(),
                            [&](std::size_t i) { return execution.dst(stays[i].send).index(); });
  std::vector<Wait> waits;
  for (std::size_t n = 0; n < execution.topology.num_nodes(); ++n) {
    waits.clear();
    for (const std::size_t i : at_node[n]) {
      const Stay& stay = stays[i];
      waits.push_back(
          {stay.from_us, stay.to_us, execution.demand.bytes(execution.sends[stay.send].chunk), stay.send});
    }
    const double buffer = execution.topology.node(NodeId(n)).buffer_bytes;
    sweep(waits, buffer, [&](const Wait& wait, double sum) {
      const Send& send = execution.sends[wait.send];
      first.offer(wait.from_us, 3, send, [&] {
        return fmt::format(
            "rule 3: chunk {} arrives over link {} at switch {} at {} us and waits until {} us: {} bytes "
            "wait then, "
            "its buffer_bytes are {}",
            send.chunk.value, send.link.value, n, wait.from_us, wait.to_us, sum, buffer);
      });
    });
  }
}

void check_bandwidth(const Execution& execution, const JoinedSends& transfers, std::span<const LinkId> links,
                     FirstViolation& first) {
  constexpr std::uint32_t kNotAsked = std::numeric_limits<std::uint32_t>::max();
  std::vector<std::uint32_t> position(execution.topology.num_links(), kNotAsked);
  for (std::size_t i = 0; i < links.size(); ++i) position[links[i].index()] = static_cast<std::uint32_t>(i);
  Groups groups = group_by(execution.sends.size(), links.size(),
                           [&](std::size_t s) { return position[execution.sends[s].link.index()]; });
  const auto on_link = [&](LinkId l) { return groups[position[l.index()]]; };
  for (const LinkId l : links) {
    const std::span<std::size_t> group = on_link(l);
    std::sort(group.begin(), group.end(), [&](std::size_t a, std::size_t b) {
      const Send& x = execution.sends[a];
      const Send& y = execution.sends[b];
      return std::tie(x.start_us, x.end_us, a) < std::tie(y.start_us, y.end_us, b);
    });
    const Link& link = execution.topology.link(l);
    check_link(execution, transfers, link, group, first);
    check_messages(execution, transfers, link, group, first);
  }
  for (const SharedBandwidth& group : execution.topology.shared_bandwidth()) {
    if (!group.links.empty() && position[group.links.front().index()] != kNotAsked)
      check_group(execution, transfers, group, on_link, first);
  }
}

}  // namespace rondo::replay_internal
