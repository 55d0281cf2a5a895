#include "rondo/core/replay.hpp"

#include <fmt/format.h>

#include <utility>

#include "replay_internal.hpp"
#include "rondo/core/subfabric.hpp"

namespace rondo::replay_internal {

std::string Execution::describe(std::size_t s) const {
  const Send& send = sends[s];
  return fmt::format("chunk {} over link {} (node {} -> node {}) from {} us{}", send.chunk.value,
                     send.link.value, src(s).value, dst(s).value, send.start_us,
                     send.transfer == kNoTransfer ? "" : fmt::format(", transfer {},", send.transfer));
}

std::optional<std::string> malformed(const Topology& topology, const Demand& demand, const Send& send) {
  if (!send.chunk.valid() || send.chunk.index() >= demand.num_chunks()) {
    return fmt::format("chunk {} does not exist; chunks are 0 to {}", send.chunk.value,
                       demand.num_chunks() - 1);
  }
  if (!send.link.valid() || send.link.index() >= topology.num_links()) {
    return fmt::format("link {} does not exist; the fabric has {} links", send.link.value,
                       topology.num_links());
  }
  const auto what = [&] { return fmt::format("chunk {} over link {}", send.chunk.value, send.link.value); };
  if (send.op != SendOp::copy && !demand.contribution(send.chunk).reduce)
    return fmt::format("rule 9: op {} of {} is not copy (0); the chunk is no sum", static_cast<int>(send.op),
                       what());
  if (send.op != SendOp::copy && send.op != SendOp::reduce)
    return fmt::format("op {} of {} is neither copy (0) nor reduce (1)", static_cast<int>(send.op), what());
  for (const double t : {send.start_us, send.end_us, send.arrival_us}) {
    if (!std::isfinite(t) || t < 0)
      return fmt::format("{} has the time {} us; times are finite and not negative", what(), t);
  }
  if (send.transfer < kNoTransfer) {
    return fmt::format("{} has transfer {}; numbers are 0 or more, {} is none", what(), send.transfer,
                       kNoTransfer);
  }
  if (!send.has_rate()) return std::nullopt;
  if (!(send.rate_GBps > 0) || !std::isfinite(send.rate_GBps))
    return fmt::format("{} has rate_GBps {}; a rate is positive and finite", what(), send.rate_GBps);
  if (send.transfer == kNoTransfer) {
    return fmt::format(
        "rule 4: {} has rate_GBps {} and no transfer number; number all sends that run at the rate", what(),
        send.rate_GBps);
  }
  return std::nullopt;
}

namespace {

/// Puts the sends of one chunk, named by their positions, in the order of Execution.
void sort_sends(std::span<const Send> sends, std::span<std::uint32_t> of_chunk) {
  const auto rest = [](const Send& s) {
    return std::tuple(s.end_us, s.arrival_us, s.transfer, s.op, s.has_rate() ? s.rate_GBps : -1.0);
  };
  const auto is_before = [&](std::uint32_t i, std::uint32_t j) {
    const Send& a = sends[i];
    const Send& b = sends[j];
    if (a.start_us != b.start_us) return a.start_us < b.start_us;
    if (a.link != b.link) return a.link < b.link;
    return rest(a) < rest(b);
  };
  if (!std::ranges::is_sorted(of_chunk, is_before)) std::ranges::sort(of_chunk, is_before);
}

}  // namespace

Execution execution_of(const Topology& topology, const Demand& demand, ChunkRange chunks,
                       std::span<const Send> sends, std::span<std::uint32_t> positions) {
  Execution execution{topology, demand, chunks, {}, {}};
  execution.sends.reserve(positions.size());
  execution.first_of_chunk.reserve(chunks.size() + 1);
  for (std::size_t c = chunks.first, at = 0; c < chunks.end; ++c) {
    const std::size_t begin = at;
    while (at < positions.size() && sends[positions[at]].chunk.index() == c) ++at;
    const std::span<std::uint32_t> of_chunk = positions.subspan(begin, at - begin);
    sort_sends(sends, of_chunk);
    execution.first_of_chunk.push_back(begin);
    for (const std::uint32_t s : of_chunk) execution.sends.push_back(sends[s]);
  }
  execution.first_of_chunk.push_back(execution.sends.size());
  return execution;
}

namespace {

/// Rule 11: GPUs outside a group that forbids relays neither send nor receive.
void check_relays(const Execution& execution, FirstViolation& first) {
  const Demand& demand = execution.demand;
  if (!demand.forbids_relays()) return;
  const std::vector<char> forbidden = forbidden_nodes(execution.topology, demand);
  for (std::size_t s = 0; s < execution.sends.size(); ++s) {
    for (const NodeId end : {execution.src(s), execution.dst(s)}) {
      if (!forbidden[end.index()]) continue;
      first.offer(execution.sends[s].start_us, 0, execution.sends[s], [&] {
        return fmt::format(
            "rule 11: {} has an end at GPU {}, which is not in the group {}, and relay is none",
            execution.describe(s), execution.topology.gpu_of(end).value, to_string(demand.shape().group));
      });
    }
  }
}

/// Rule 10: only what may add is asked to.
void check_operations(const Execution& execution, FirstViolation& first) {
  for (std::size_t s = 0; s < execution.sends.size(); ++s) {
    const Send& send = execution.sends[s];
    const Node& end = execution.topology.node(execution.dst(s));
    if (send.op == SendOp::copy || end.kind == NodeKind::gpu || end.reduce) continue;
    first.offer(send.start_us, 0, send, [&] {
      return fmt::format("rule 10: {} has op 1, but switch {} may not add", execution.describe(s),
                         execution.dst(s).value);
    });
  }
}

/// Rule 1: end and arrival are what start, message cost, rate and latency give.
void check_times(const Execution& execution, const JoinedSends& transfers, FirstViolation& first) {
  for (std::size_t s = 0; s < execution.sends.size(); ++s) {
    const Send& send = execution.sends[s];
    const double end = send.start_us + transfers.duration_us[s];
    const double arrival = end + execution.link(s).latency_us;
    if (!std::isfinite(end)) {
      first.offer(send.start_us, 1, send, [&] {
        return fmt::format("rule 1: {} never ends, since the bandwidth of its links stays 0",
                           execution.describe(s));
      });
    } else if (!times_equal(send.end_us, end)) {
      first.offer(send.start_us, 1, send, [&] {
        return fmt::format("rule 1: {} at {} GB/s ends at {} us, not at {} us", execution.describe(s),
                           transfers.rate_GBps[s], end, send.end_us);
      });
    } else if (!times_equal(send.arrival_us, arrival)) {
      first.offer(send.start_us, 1, send, [&] {
        return fmt::format("rule 1: {} arrives at {} us, not at {} us", execution.describe(s), arrival,
                           send.arrival_us);
      });
    }
  }
}

}  // namespace

JoinedSends execute_chunks(const Execution& execution, FirstViolation& first, Causality& causality) {
  check_relays(execution, first);
  check_operations(execution, first);
  const Numbered numbered = check_numbers(execution, first);
  JoinedSends transfers = find_crossings(execution, first);
  set_rates(execution, numbered, transfers, first);
  check_times(execution, transfers, first);
  derive(execution, transfers, first, causality);
  derive_sums(execution, transfers, first, causality);
  return transfers;
}

}  // namespace rondo::replay_internal

namespace rondo {

bool times_equal(double a_us, double b_us) {
  return std::abs(a_us - b_us) <= replay_internal::tolerance_us(a_us, b_us);
}

ReplayResult replay(const Topology& topology, const Demand& demand, std::span<const Send> sends) {
  using namespace replay_internal;
  if (sends.size() > kMostAtOnce && replays_in_parts(topology, demand, sends))
    return replay_part_by_part(topology, demand, sends);
  for (const Send& send : sends) {
    if (auto violation = malformed(topology, demand, send)) return {std::move(violation)};
  }
  const ChunkRange all{0, demand.num_chunks()};
  std::vector<std::uint32_t> positions = positions_by_chunk(all, sends);
  const Execution execution = execution_of(topology, demand, all, sends, positions);
  FirstViolation first;
  Causality causality;
  causality.contribution_finish_us.resize(demand.contributions().size());
  const JoinedSends transfers = execute_chunks(execution, first, causality);
  check_buffers(execution, causality.stays, first);
  check_relay_memory(execution, first);
  check_bandwidth(execution, transfers, all_links(topology), first);
  if (first.found()) return {first.found()->sentence};
  return {std::nullopt, causality.finish_us, std::move(causality.contribution_finish_us)};
}

}  // namespace rondo
