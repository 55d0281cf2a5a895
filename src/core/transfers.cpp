#include "rondo/core/transfers.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <queue>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "rondo/core/replay.hpp"

namespace rondo {
namespace {

bool not_after(double a_us, double b_us) {
  return a_us <= b_us || times_equal(a_us, b_us);
}

/// Finds which send continues which at switches.
class SwitchPairing {
 public:
  SwitchPairing(const Topology& topology, std::span<const Send> sends)
      : topology_(topology),
        sends_(sends),
        continued_(sends.size(), -1),
        first_send_(sends.size(), -1),
        uses_(sends.size(), 0) {
    std::vector<int> by_start(sends.size());
    std::iota(by_start.begin(), by_start.end(), 0);
    std::ranges::stable_sort(by_start, {}, [&](int s) { return send(s).start_us; });
    std::vector<int> leaving;
    for (const int s : by_start) {
      if (topology.is_gpu(src(s))) {
        first_send_[index(s)] = s;
      } else {
        leaving.push_back(s);
      }
      if (!topology.is_gpu(dst(s))) entering_[key(s, dst(s))].push_back(s);
    }
    // Without latency a send may leave a switch before the one that it continues in this order.
    for (std::size_t before = leaving.size() + 1; leaving.size() < before;) {
      before = leaving.size();
      std::erase_if(leaving, [&](int s) { return pair(s); });
    }
  }

  std::vector<Delivery> deliveries() const {
    std::vector<Delivery> deliveries;
    for (int s = 0; s < static_cast<int>(sends_.size()); ++s) {
      const int first = first_send_[index(s)];
      if (first < 0 || !topology_.is_gpu(dst(s))) continue;
      deliveries.push_back({send(s).chunk, topology_.gpu_of(src(first)), topology_.gpu_of(dst(s)),
                            send(first).start_us, send(s).arrival_us, first, s});
    }
    std::ranges::sort(deliveries, {},
                      [](const Delivery& d) { return std::tuple(d.start_us, d.first_send, d.last_send); });
    return deliveries;
  }

  std::vector<int> take_continued() && { return std::move(continued_); }

 private:
  const Send& send(int s) const { return sends_[index(s)]; }
  NodeId src(int s) const { return topology_.link(send(s).link).src; }
  NodeId dst(int s) const { return topology_.link(send(s).link).dst; }
  std::uint64_t key(int s, NodeId node) const {
    return static_cast<std::uint64_t>(send(s).chunk.index()) * topology_.num_nodes() + node.index();
  }

  bool can_continue(const Send& in, const Send& out, Forwarding forwarding) const {
    if (forwarding == Forwarding::store_and_forward) return not_after(in.arrival_us, out.start_us);
    // At one rate the last byte passes as the first one does.
    return times_equal(in.start_us + topology_.link(in.link).latency_us, out.start_us) &&
           times_equal(in.arrival_us, out.end_us);
  }

  bool is_better(int a, int b) const {
    if ((uses_[index(a)] == 0) != (uses_[index(b)] == 0)) return uses_[index(a)] == 0;
    if (!times_equal(send(a).arrival_us, send(b).arrival_us)) return send(a).arrival_us > send(b).arrival_us;
    return uses_[index(a)] < uses_[index(b)];
  }

  bool pair(int out) {
    const NodeId at = src(out);
    int best = -1;
    for (const int in : entering_[key(out, at)]) {
      if (first_send_[index(in)] < 0 || !can_continue(send(in), send(out), topology_.node(at).forwarding))
        continue;
      if (best < 0 || is_better(in, best)) best = in;
    }
    if (best < 0) return false;
    ++uses_[index(best)];
    continued_[index(out)] = best;
    first_send_[index(out)] = first_send_[index(best)];
    return true;
  }

  const Topology& topology_;
  std::span<const Send> sends_;
  std::vector<int> continued_;
  std::vector<int> first_send_;
  std::vector<int> uses_;                                         ///< how many sends continue it
  std::unordered_map<std::uint64_t, std::vector<int>> entering_;  ///< per chunk and switch, by start
};

}  // namespace

Transfers transfers_of(const Topology& topology, const Demand& demand, std::span<const Send> sends) {
  SwitchPairing pairing(topology, sends);
  Transfers transfers{{}, pairing.deliveries()};
  transfers.continued = std::move(pairing).take_continued();
  find_causes(demand, transfers.deliveries);
  return transfers;
}

void find_causes(const Demand& demand, std::vector<Delivery>& deliveries) {
  // In the order of arrivals, from the origins on: what rests on itself alone causes nothing, however short.
  using Arrival = std::pair<double, int>;
  std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>> flying;
  std::vector<int> by_source(deliveries.size());
  std::iota(by_source.begin(), by_source.end(), 0);
  const auto source = [&](int d) { return std::pair(deliveries[index(d)].chunk, deliveries[index(d)].src); };
  std::ranges::stable_sort(by_source, {}, source);
  ChunkGpuTable<char> is_there(demand, 0);
  const auto arrive = [&](ChunkId chunk, GpuId gpu, int by, double at_us) {
    is_there(chunk, gpu) = 1;
    for (const int d : std::ranges::equal_range(by_source, std::pair(chunk, gpu), {}, source)) {
      Delivery& onward = deliveries[index(d)];
      if (!not_after(at_us, onward.start_us)) continue;
      onward.cause = by;
      flying.push({onward.arrival_us, d});
    }
  };
  for (Delivery& delivery : deliveries) delivery.cause = -1;
  for (std::size_t c = 0; c < demand.num_chunks(); ++c) {
    arrive(ChunkId{c}, demand.origin(ChunkId{c}), -1, demand.ready_us(ChunkId{c}));
  }
  while (!flying.empty()) {
    const int d = flying.top().second;
    flying.pop();
    const Delivery& landed = deliveries[index(d)];
    if (!is_there(landed.chunk, landed.dst)) arrive(landed.chunk, landed.dst, d, landed.arrival_us);
  }
}

ChunkGpuTable<int> first_arrivals(const Demand& demand, std::span<const Delivery> deliveries) {
  ChunkGpuTable<int> first(demand, -1);
  for (std::size_t d = 0; d < deliveries.size(); ++d) {
    int& known = first(deliveries[d].chunk, deliveries[d].dst);
    if (known < 0 || deliveries[d].arrival_us < deliveries[index(known)].arrival_us)
      known = static_cast<int>(d);
  }
  return first;
}

std::vector<char> needed_deliveries(const Demand& demand, std::span<const Delivery> deliveries) {
  const ChunkGpuTable<int> first = first_arrivals(demand, deliveries);
  std::vector<char> needed(deliveries.size(), 0);
  for (std::size_t c = 0; c < demand.num_chunks(); ++c) {
    for (const GpuId g : demand.destinations(ChunkId{c})) {
      for (int d = first(ChunkId{c}, g); d >= 0 && !needed[index(d)]; d = deliveries[index(d)].cause)
        needed[index(d)] = 1;
    }
  }
  return needed;
}

std::vector<Send> pruned(const Topology& topology, const Demand& demand, std::span<const Send> sends) {
  const Transfers transfers = transfers_of(topology, demand, sends);
  const std::vector<char> needed = needed_deliveries(demand, transfers.deliveries);
  std::vector<char> is_kept(sends.size(), 0);
  for (std::size_t d = 0; d < needed.size(); ++d) {
    if (!needed[d]) continue;
    for (int s = transfers.deliveries[d].last_send; s >= 0; s = transfers.continued[index(s)])
      is_kept[index(s)] = 1;
  }
  std::vector<Send> kept;
  for (std::size_t s = 0; s < sends.size(); ++s) {
    if (is_kept[s]) kept.push_back(sends[s]);
  }
  return kept;
}

}  // namespace rondo
