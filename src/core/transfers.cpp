#include "rondo/core/transfers.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <queue>
#include <unordered_map>
#include <utility>

#include "continued_sends.hpp"
#include "partial_sums.hpp"
#include "rondo/core/replay.hpp"

namespace rondo {
namespace {

/// The deliveries of each chunk that each GPU sends, in their order.
class OnwardDeliveries {
 public:
  OnwardDeliveries(const Demand& demand, std::span<const Delivery> deliveries)
      : num_gpus_(demand.num_gpus()),
        begin_(demand.num_chunks() * num_gpus_ + 1, 0),
        sorted_(deliveries.size()) {
    for (const Delivery& d : deliveries) ++begin_[cell(d.chunk, d.src) + 1];
    std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
    std::vector<int> next(begin_.begin(), begin_.end() - 1);
    for (std::size_t d = 0; d < deliveries.size(); ++d)
      sorted_[index(next[cell(deliveries[d].chunk, deliveries[d].src)]++)] = static_cast<int>(d);
  }
  std::span<const int> operator()(ChunkId chunk, GpuId gpu) const {
    const std::size_t c = cell(chunk, gpu);
    return std::span(sorted_).subspan(index(begin_[c]), index(begin_[c + 1] - begin_[c]));
  }

 private:
  std::size_t cell(ChunkId chunk, GpuId gpu) const { return chunk.index() * num_gpus_ + gpu.index(); }

  std::size_t num_gpus_;
  std::vector<int> begin_;  ///< per cell, and the end
  std::vector<int> sorted_;
};

/// In the order of arrivals, from the sources on: what rests on itself alone causes nothing, however short.
void find_causes_of_copies(const Demand& demand, std::vector<Delivery>& deliveries) {
  using Arrival = std::pair<double, int>;
  std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>> flying;
  const OnwardDeliveries onward_from(demand, deliveries);
  ChunkGpuTable<char> is_there(demand, 0);
  const auto arrive = [&](ChunkId chunk, GpuId gpu, int by, double at_us) {
    is_there(chunk, gpu) = 1;
    for (const int d : onward_from(chunk, gpu)) {
      Delivery& onward = deliveries[index(d)];
      if (!not_after(at_us, onward.start_us)) continue;
      onward.cause = by;
      flying.push({onward.arrival_us, d});
    }
  };
  for (std::size_t c = 0; c < demand.num_chunks(); ++c) {
    const Contribution& contribution = demand.contribution(ChunkId{c});
    if (contribution.reduce) continue;
    const auto sources = contribution.all_sources();
    for (std::size_t s = 0; s < sources.size(); ++s)
      arrive(ChunkId{c}, sources[s], -1, contribution.ready_us_of(s));
  }
  while (!flying.empty()) {
    const int d = flying.top().second;
    flying.pop();
    const Delivery& landed = deliveries[index(d)];
    if (!is_there(landed.chunk, landed.dst)) arrive(landed.chunk, landed.dst, d, landed.arrival_us);
  }
}

}  // namespace

Transfers transfers_of(const Topology& topology, const Demand& demand, std::span<const Send> sends) {
  Transfers transfers = paired_at_switches(topology, demand, sends);
  find_causes(demand, transfers.deliveries);
  return transfers;
}

void find_causes(const Demand& demand, std::vector<Delivery>& deliveries) {
  for (Delivery& delivery : deliveries) delivery.cause = delivery.before = -1;
  find_causes_of_copies(demand, deliveries);
  if (demand.has_several_sources()) find_causes_of_sums(demand, deliveries);
}

ChunkGpuTable<int> first_arrivals(const Demand& demand, std::span<const Delivery> deliveries) {
  const std::vector<int> sizes =
      demand.has_several_sources() ? sizes_of_sums(demand, deliveries).after : std::vector<int>{};
  ChunkGpuTable<int> first(demand, -1);
  for (std::size_t d = 0; d < deliveries.size(); ++d) {
    if (is_sum(demand, deliveries[d].chunk) &&
        sizes[d] < std::ssize(demand.contribution(deliveries[d].chunk).sources))
      continue;
    int& known = first(deliveries[d].chunk, deliveries[d].dst);
    if (known < 0 || deliveries[d].arrival_us < deliveries[index(known)].arrival_us)
      known = static_cast<int>(d);
  }
  return first;
}

std::vector<char> needed_deliveries(const Demand& demand, std::span<const Delivery> deliveries) {
  const ChunkGpuTable<int> first = first_arrivals(demand, deliveries);
  std::vector<char> needed(deliveries.size(), 0);
  std::vector<int> open;
  const auto need = [&](int d) {
    if (d < 0 || needed[index(d)]) return;
    needed[index(d)] = 1;
    open.push_back(d);
  };
  for (std::size_t c = 0; c < demand.num_chunks(); ++c) {
    for (const GpuId g : demand.destinations(ChunkId{c})) need(first(ChunkId{c}, g));
  }
  while (!open.empty()) {
    const Delivery& delivery = deliveries[index(open.back())];
    open.pop_back();
    need(delivery.cause);
    need(delivery.before);
  }
  return needed;
}

void number_transfers(const Topology& topology, const Demand& demand, std::vector<Send>& sends) {
  const std::vector<int> continued = transfers_of(topology, demand, sends).continued;
  // A store-and-forward switch ends a transfer.
  const auto begins = [&](std::size_t s) {
    return continued[s] < 0 || topology.node(topology.link(sends[s].link).src).stores();
  };
  std::vector<std::size_t> first(sends.size());
  std::vector<char> is_long(sends.size(), 0);
  std::int32_t next_number = next_transfer_number(sends);
  for (std::size_t s = 0; s < sends.size(); ++s) {
    std::size_t root = s;
    while (!begins(root)) root = index(continued[root]);
    first[s] = root;
    if (root != s) is_long[root] = 1;
  }
  std::vector<std::int32_t> number(sends.size(), kNoTransfer);
  for (std::size_t s = 0; s < sends.size(); ++s) {
    if (!is_long[first[s]] || sends[s].transfer != kNoTransfer) continue;
    if (number[first[s]] == kNoTransfer) number[first[s]] = next_number++;
    sends[s].transfer = number[first[s]];
  }
}

void number_all_transfers(const Topology& topology, const Demand& demand, std::vector<Send>& sends) {
  number_transfers(topology, demand, sends);
  std::int32_t next_number = next_transfer_number(sends);
  for (Send& send : sends) {
    if (send.transfer == kNoTransfer) send.transfer = next_number++;
  }
}

std::int32_t next_transfer_number(std::span<const Send> sends) {
  std::int32_t next = 0;
  for (const Send& send : sends) next = std::max(next, send.transfer + 1);
  return next;
}

std::vector<Send> pruned(const Topology& topology, const Demand& demand, std::span<const Send> sends) {
  const Transfers transfers = transfers_of(topology, demand, sends);
  const std::vector<char> needed = needed_deliveries(demand, transfers.deliveries);
  std::unordered_multimap<int, int> added;  // to the send that the sum continues
  for (std::size_t s = 0; s < transfers.added_into.size(); ++s) {
    if (const int into = transfers.added_into[s]; into >= 0)
      added.emplace(transfers.continued[index(into)], static_cast<int>(s));
  }
  std::vector<char> is_kept(sends.size(), 0);
  for (std::size_t d = 0; d < needed.size(); ++d) {
    if (!needed[d]) continue;
    std::vector<int> open = {transfers.deliveries[d].last_send};
    while (!open.empty()) {
      const int s = open.back();
      open.pop_back();
      if (s < 0 || is_kept[index(s)]) continue;
      is_kept[index(s)] = 1;
      open.push_back(transfers.continued[index(s)]);
      const auto [first, last] = added.equal_range(s);
      for (auto in = first; in != last; ++in) open.push_back(in->second);
    }
  }
  std::vector<Send> kept;
  for (std::size_t s = 0; s < sends.size(); ++s) {
    if (is_kept[s]) kept.push_back(sends[s]);
  }
  return kept;
}

}  // namespace rondo
