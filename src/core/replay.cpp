#include "rondo/core/replay.hpp"

#include <fmt/format.h>

#include <numeric>
#include <utility>

#include "replay_internal.hpp"

namespace rondo::replay_internal {

std::string Execution::describe(std::size_t s) const {
  const Send& send = sends[s];
  return fmt::format("chunk {} over link {} (node {} -> node {}) from {} us", send.chunk.value,
                     send.link.value, src(s).value, dst(s).value, send.start_us);
}

}  // namespace rondo::replay_internal

namespace rondo {

using namespace replay_internal;

bool times_equal(double a_us, double b_us) {
  return std::abs(a_us - b_us) <= tolerance_us(a_us, b_us);
}

namespace {

/// What keeps a send from being looked at any further, or nothing.
std::optional<std::string> malformed(const Topology& topology, const Demand& demand, const Send& send) {
  if (!send.chunk.valid() || send.chunk.index() >= demand.num_chunks()) {
    return fmt::format("chunk {} does not exist; chunks are 0 to {}", send.chunk.value,
                       demand.num_chunks() - 1);
  }
  if (!send.link.valid() || send.link.index() >= topology.num_links()) {
    return fmt::format("link {} does not exist; the fabric has {} links", send.link.value,
                       topology.num_links());
  }
  if (send.op != SendOp::copy) {
    return fmt::format("op {} of chunk {} over link {} is not copy (0)", static_cast<int>(send.op),
                       send.chunk.value, send.link.value);
  }
  for (const double t : {send.start_us, send.end_us, send.arrival_us}) {
    if (!std::isfinite(t) || t < 0) {
      return fmt::format("chunk {} over link {} has the time {} us; times are finite and not negative",
                         send.chunk.value, send.link.value, t);
    }
  }
  return std::nullopt;
}

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
  std::partial_sum(groups.begin.begin(), groups.begin.end(), groups.begin.begin());
  std::vector<std::size_t> next(groups.begin.begin(), groups.begin.end() - 1);
  for (std::size_t i = 0; i < count; ++i) groups.order[next[key(i)]++] = i;
  return groups;
}

Execution sort_by_chunk(const Topology& topology, const Demand& demand, std::span<const Send> sends) {
  Groups groups =
      group_by(sends.size(), demand.num_chunks(), [&](std::size_t i) { return sends[i].chunk.index(); });
  Execution execution{topology, demand, {}, std::move(groups.begin)};
  execution.sends.reserve(sends.size());
  for (const std::size_t i : groups.order) execution.sends.push_back(sends[i]);
  for (std::size_t c = 0; c < demand.num_chunks(); ++c) {
    const auto at = [&](std::size_t i) { return execution.sends.begin() + static_cast<std::ptrdiff_t>(i); };
    std::sort(at(execution.first_of_chunk[c]), at(execution.first_of_chunk[c + 1]),
              [](const Send& a, const Send& b) {
                return std::tie(a.start_us, a.link, a.end_us, a.arrival_us) <
                       std::tie(b.start_us, b.link, b.end_us, b.arrival_us);
              });
  }
  return execution;
}

/// Rule 1: end and arrival are what start, rate and latency give.
void check_times(const Execution& execution, const Transfers& transfers, FirstViolation& first) {
  for (std::size_t s = 0; s < execution.sends.size(); ++s) {
    const Send& send = execution.sends[s];
    const double rate = transfers.rate_GBps[s];
    const double end = send.start_us + execution.duration_us(s, rate);
    const double arrival = end + execution.topology.link(send.link).latency_us;
    if (!times_equal(send.end_us, end)) {
      first.offer(send.start_us, 1, send, [&] {
        return fmt::format("rule 1: {} at {} GB/s ends at {} us, not at {} us", execution.describe(s), rate,
                           end, send.end_us);
      });
    } else if (!times_equal(send.arrival_us, arrival)) {
      first.offer(send.start_us, 1, send, [&] {
        return fmt::format("rule 1: {} arrives at {} us, not at {} us", execution.describe(s), arrival,
                           send.arrival_us);
      });
    }
  }
}

/// Rule 1: a send has its link alone. `on_link` holds the sends of one link by start.
void check_exclusive(const Execution& execution, std::span<const std::size_t> on_link,
                     FirstViolation& first) {
  // Overlaps within the tolerance add up as long as they follow one another: any number of sends that are
  // each shorter than the tolerance must not share one instant.
  double busy_until = 0;
  for (std::size_t i = 0; i < on_link.size(); ++i) {
    const Send& send = execution.sends[on_link[i]];
    if (!no_later(busy_until, send.start_us)) {
      first.offer(send.start_us, 1, send, [&] {
        return fmt::format("rule 1: {} starts while the link is occupied until {} us by chunk {}",
                           execution.describe(on_link[i]), busy_until,
                           execution.sends[on_link[i - 1]].chunk.value);
      });
    }
    busy_until = std::max(busy_until, send.start_us) + (send.end_us - send.start_us);
  }
}

/// Something is in use during [from, to) by a send.
struct Use {
  double from_us;
  double to_us;
  double amount;
  std::size_t send;
};

/// Calls `exceeds(use, sum)` for each use at whose start the amounts in use sum to more than `limit`. What
/// overlaps by no more than the tolerance does not count as overlapping.
template <class Exceeds>
void sweep(std::vector<Use> uses, double limit, Exceeds exceeds) {
  const auto ends_us = [](const Use& use) { return use.to_us - tolerance_us(use.to_us, use.to_us); };
  std::erase_if(uses, [&](const Use& use) { return ends_us(use) <= use.from_us; });
  std::sort(uses.begin(), uses.end(), [](const Use& a, const Use& b) {
    return std::tie(a.from_us, a.to_us, a.send) < std::tie(b.from_us, b.to_us, b.send);
  });
  std::vector<Use> by_end = uses;
  std::sort(by_end.begin(), by_end.end(), [](const Use& a, const Use& b) {
    return std::tie(a.to_us, a.from_us, a.send) < std::tie(b.to_us, b.from_us, b.send);
  });
  double sum = 0;
  std::size_t over = 0;
  for (std::size_t i = 0; i < uses.size(); ++i) {
    for (; over < i && ends_us(by_end[over]) <= uses[i].from_us; ++over) sum -= by_end[over].amount;
    if (over == i) sum = 0;  // nothing is in use: drop what rounding has left
    sum += uses[i].amount;
    if (sum > limit * (1 + 1e-9)) exceeds(uses[i], sum);
  }
}

/// Rule 3: what waits in a store-and-forward switch fits its buffer.
void check_buffers(const Execution& execution, const std::vector<Stay>& stays, FirstViolation& first) {
  Groups at_node = group_by(stays.size(), execution.topology.num_nodes(),
                            [&](std::size_t i) { return execution.dst(stays[i].send).index(); });
  std::vector<Use> uses;
  for (std::size_t n = 0; n < execution.topology.num_nodes(); ++n) {
    uses.clear();
    for (const std::size_t i : at_node[n]) {
      const Stay& stay = stays[i];
      uses.push_back(
          {stay.from_us, stay.to_us, execution.demand.bytes(execution.sends[stay.send].chunk), stay.send});
    }
    const double buffer = execution.topology.node(NodeId(n)).buffer_bytes;
    sweep(uses, buffer, [&](const Use& use, double sum) {
      const Send& send = execution.sends[use.send];
      first.offer(use.from_us, 3, send, [&] {
        return fmt::format(
            "rule 3: chunk {} arrives over link {} at switch {} at {} us and waits until {} us: {} bytes "
            "wait then, "
            "its buffer_bytes are {}",
            send.chunk.value, send.link.value, n, use.from_us, use.to_us, sum, buffer);
      });
    });
  }
}

/// Rule 6, for one group.
void check_shared(const Execution& execution, const Transfers& transfers, const SharedBandwidth& group,
                  Groups& on_link, FirstViolation& first) {
  std::vector<Use> uses;
  for (const LinkId l : group.links) {
    for (const std::size_t s : on_link[l.index()]) {
      uses.push_back({execution.sends[s].start_us, execution.sends[s].end_us, transfers.rate_GBps[s], s});
    }
  }
  sweep(std::move(uses), group.bandwidth_GBps, [&](const Use& use, double sum) {
    first.offer(use.from_us, 6, execution.sends[use.send], [&] {
      return fmt::format("rule 6: {} brings the links of '{}' to {} GB/s; they share {} GB/s",
                         execution.describe(use.send), group.name, sum, group.bandwidth_GBps);
    });
  });
}

}  // namespace

ReplayResult replay(const Topology& topology, const Demand& demand, std::span<const Send> sends) {
  for (const Send& send : sends) {
    if (auto violation = malformed(topology, demand, send)) return {std::move(violation)};
  }
  const Execution execution = sort_by_chunk(topology, demand, sends);
  FirstViolation first;
  const Transfers transfers = join_transfers(execution, first);
  check_times(execution, transfers, first);
  const Causality causality = derive(execution, transfers, first);
  check_buffers(execution, causality.stays, first);

  Groups on_link = group_by(execution.sends.size(), topology.num_links(),
                            [&](std::size_t s) { return execution.sends[s].link.index(); });
  for (std::size_t l = 0; l < topology.num_links(); ++l) {
    const std::span<std::size_t> group = on_link[l];
    std::sort(group.begin(), group.end(), [&](std::size_t a, std::size_t b) {
      const Send& x = execution.sends[a];
      const Send& y = execution.sends[b];
      return std::tie(x.start_us, x.end_us, a) < std::tie(y.start_us, y.end_us, b);
    });
    check_exclusive(execution, group, first);
  }
  for (const SharedBandwidth& group : topology.shared_bandwidth()) {
    check_shared(execution, transfers, group, on_link, first);
  }
  if (first.found()) return {first.found()};
  return {std::nullopt, causality.finish_us};
}

}  // namespace rondo
