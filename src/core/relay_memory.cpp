#include "rondo/core/relay_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>
#include <tuple>
#include <utility>

#include "replay_internal.hpp"

namespace rondo {
namespace {

using replay_internal::no_later;

/// What comes to a GPU that only passes it on, or leaves it.
struct Passage {
  GpuId gpu;
  ChunkId chunk;
  bool leaves;
  double at_us;  ///< arrival, or start
  std::size_t send;
};

std::vector<Passage> passages_of(const Topology& topology, const Demand& demand,
                                 std::span<const Send> sends) {
  std::vector<Passage> passages;
  for (std::size_t s = 0; s < sends.size(); ++s) {
    const Link& link = topology.link(sends[s].link);
    const Contribution& part = demand.contribution(sends[s].chunk);
    for (const bool leaves : {false, true}) {
      const NodeId end = leaves ? link.src : link.dst;
      if (!topology.is_gpu(end) || !only_relays(part, topology.gpu_of(end))) continue;
      passages.push_back({topology.gpu_of(end), sends[s].chunk, leaves,
                          leaves ? sends[s].start_us : sends[s].arrival_us, s});
    }
  }
  std::ranges::sort(passages, {},
                    [](const Passage& p) { return std::tuple(p.gpu, p.chunk, p.at_us, p.leaves, p.send); });
  return passages;
}

/// The stays of one chunk on one GPU: each send onwards uses the latest arrival that is not after it.
/// Passages are by time.
void add_stays(const Topology& topology, std::span<const Passage> passages, std::span<const Send> sends,
               std::vector<RelayStay>& all) {
  std::vector<RelayStay> stays;
  std::vector<double> arrival_us;
  for (const Passage& p : passages) {
    if (p.leaves) continue;
    const Send& send = sends[p.send];
    stays.push_back(
        {p.gpu, p.chunk, send.start_us + topology.link(send.link).latency_us, send.arrival_us, p.send});
    arrival_us.push_back(send.arrival_us);
  }
  for (const Passage& p : passages) {
    if (!p.leaves) continue;
    std::size_t used = stays.size();
    while (used > 0 && !no_later(arrival_us[used - 1], p.at_us)) --used;
    if (used == 0) continue;  // it has no cause: rule 2 says so
    // Of a sum also what it was added to, back to the copy that replaced all before.
    for (bool is_needed = true; is_needed && used > 0; --used) {
      RelayStay& stay = stays[used - 1];
      stay.to_us = std::max(stay.to_us, sends[p.send].end_us);
      is_needed = sends[stay.send].op == SendOp::reduce;
    }
  }
  std::ranges::sort(stays, {}, [](const RelayStay& s) { return std::tuple(s.from_us, s.to_us, s.send); });
  const std::size_t first = all.size();
  for (const RelayStay& stay : stays) {
    if (all.size() > first && no_later(stay.from_us, all.back().to_us)) {
      all.back().to_us = std::max(all.back().to_us, stay.to_us);
    } else {
      all.push_back(stay);
    }
  }
}

/// `visit(gpu, stays)` for each GPU that has some; they are by GPU.
template <class Visit>
void for_each_gpu(std::span<const RelayStay> stays, const Visit& visit) {
  while (!stays.empty()) {
    const GpuId gpu = stays.front().gpu;
    const auto end = std::ranges::find_if(stays, [&](const RelayStay& stay) { return stay.gpu != gpu; });
    const auto count = static_cast<std::size_t>(end - stays.begin());
    visit(gpu, stays.first(count));
    stays = stays.subspan(count);
  }
}

}  // namespace

Topology with_relay_memory(const Topology& topology, double bytes) {
  TopologyData data = topology.data();
  for (Node& node : data.nodes) {
    if (node.kind == NodeKind::gpu) node.relay_bytes = bytes;
  }
  return Topology(std::move(data));
}

bool only_relays(const Contribution& part, GpuId gpu) {
  const auto sources = part.all_sources();
  return std::ranges::find(sources, gpu) == sources.end() &&
         std::ranges::find(part.held, gpu, &HeldSum::gpu) == part.held.end() &&
         !std::ranges::binary_search(part.destinations, gpu);
}

bool has_limited_relays(const Topology& topology, const Demand& demand) {
  if (!topology.limits_relay_memory()) return false;
  std::vector<GpuId> limited;
  for (std::size_t g = 0; g < topology.num_gpus(); ++g) {
    if (std::isfinite(topology.node(topology.node_of(GpuId(g))).relay_bytes)) limited.emplace_back(g);
  }
  return std::ranges::any_of(demand.contributions(), [&](const Contribution& part) {
    return std::ranges::any_of(limited, [&](GpuId g) { return only_relays(part, g); });
  });
}

std::vector<RelayStay> relay_stays(const Topology& topology, const Demand& demand,
                                   std::span<const Send> sends) {
  const std::vector<Passage> passages = passages_of(topology, demand, sends);
  std::vector<RelayStay> stays;
  for (std::size_t begin = 0; begin < passages.size();) {
    std::size_t end = begin;
    while (end < passages.size() && passages[end].gpu == passages[begin].gpu &&
           passages[end].chunk == passages[begin].chunk)
      ++end;
    add_stays(topology, std::span(passages).subspan(begin, end - begin), sends, stays);
    begin = end;
  }
  std::ranges::sort(stays, {},
                    [](const RelayStay& s) { return std::tuple(s.gpu, s.from_us, s.chunk, s.send); });
  return stays;
}

Overflow find_overflow(std::span<const RelayStay> of_gpu, const Demand& demand, double limit, double* peak) {
  using Leaving = std::pair<double, double>;  // when, and its bytes
  std::priority_queue<Leaving, std::vector<Leaving>, std::greater<>> there;
  double sum = 0;
  Overflow first;
  for (const RelayStay& stay : of_gpu) {
    while (!there.empty() && no_later(there.top().first, stay.from_us)) {
      sum -= there.top().second;
      there.pop();
    }
    if (there.empty()) sum = 0;  // drop what rounding has left
    const double bytes = demand.bytes(stay.chunk);
    sum += bytes;
    there.emplace(stay.to_us, bytes);
    if (peak != nullptr) *peak = std::max(*peak, sum);
    if (first.stay == nullptr && replay_internal::is_above(sum, limit)) first = {&stay, sum};
  }
  return first;
}

std::vector<double> peak_relay_bytes(const Topology& topology, const Demand& demand,
                                     std::span<const Send> sends) {
  std::vector<double> peaks(topology.num_gpus(), 0.0);
  for_each_gpu(relay_stays(topology, demand, sends), [&](GpuId gpu, std::span<const RelayStay> stays) {
    find_overflow(stays, demand, replay_internal::kNever, &peaks[gpu.index()]);
  });
  return peaks;
}

}  // namespace rondo

namespace rondo::replay_internal {

void check_relay_memory(const Execution& execution, FirstViolation& first) {
  const Topology& topology = execution.topology;
  if (!topology.limits_relay_memory()) return;
  const std::vector<RelayStay> stays = relay_stays(topology, execution.demand, execution.sends);
  for_each_gpu(stays, [&](GpuId gpu, std::span<const RelayStay> of_gpu) {
    const double limit = topology.node(topology.node_of(gpu)).relay_bytes;
    const Overflow over = find_overflow(of_gpu, execution.demand, limit);
    if (over.stay != nullptr) {
      first.offer(over.stay->from_us, 12, execution.sends[over.stay->send], [&] {
        return fmt::format(
            "rule 12: {} begins to fill the memory of GPU {} at {} us and stays there until {} us: {} bytes "
            "that it only passes on are there then, its buffer_bytes are {}",
            execution.describe(over.stay->send), gpu.value, over.stay->from_us, over.stay->to_us, over.bytes,
            limit);
      });
    }
  });
}

}  // namespace rondo::replay_internal
