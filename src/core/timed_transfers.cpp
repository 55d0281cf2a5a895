#include "timed_transfers.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "continued_sends.hpp"
#include "rondo/core/index.hpp"
#include "rondo/core/units.hpp"

namespace rondo {
namespace {

/// Sends through a cut-through switch start at one time: their order does not tell which link comes first.
void put_first_links_first(const Topology& topology, std::vector<LinkId>& links) {
  for (std::size_t placed = 0; placed < links.size(); ++placed) {
    const auto rest = links.begin() + static_cast<std::ptrdiff_t>(placed);
    const auto next = std::find_if(rest, links.end(), [&](LinkId link) {
      const NodeId src = topology.link(link).src;
      return topology.is_gpu(src) || std::any_of(links.begin(), rest, [&](LinkId before) {
               return topology.link(before).dst == src;
             });
    });
    if (next != links.end()) std::rotate(rest, next, next + 1);
  }
}

}  // namespace

std::vector<TransferSends> transfers_by_start(const Topology& topology, std::span<const Send> sends) {
  const std::vector<int> continued = continued_sends(topology, sends);
  constexpr auto kNew = std::numeric_limits<std::size_t>::max();
  std::vector<std::size_t> of_first(sends.size(), kNew);
  std::unordered_map<std::int32_t, std::size_t> of_number;
  std::vector<TransferSends> groups;
  std::vector<int> by_start(sends.size());
  std::iota(by_start.begin(), by_start.end(), 0);
  std::ranges::stable_sort(by_start, {}, [&](int s) { return sends[index(s)].start_us; });
  for (const int s : by_start) {
    int first = s;
    while (continued[index(first)] >= 0) first = continued[index(first)];
    const std::int32_t number = sends[index(first)].transfer;
    std::size_t& at =
        number == kNoTransfer ? of_first[index(first)] : of_number.try_emplace(number, kNew).first->second;
    if (at == kNew) {
      at = groups.size();
      groups.push_back({{}, sends[index(s)].start_us});
    }
    groups[at].sends.push_back(s);
  }
  // In the order of starts: what a transfer rests on has started before.
  std::ranges::stable_sort(groups, {}, &TransferSends::start_us);
  return groups;
}

TransferShape shape_of(const TransferSends& transfer, const TimedSends& before, const Topology& topology,
                       const Demand& demand) {
  TransferShape shape;
  std::vector<LinkId> links;
  for (const int s : transfer.sends) {
    const Send& send = before.sends[index(s)];
    const LinkId link = before.link_of(send);
    if (std::ranges::find(links, link) == links.end()) links.push_back(link);
    if (std::ranges::find(shape.chunks, send.chunk) == shape.chunks.end()) {
      shape.chunks.push_back(send.chunk);
      shape.bytes += demand.bytes(send.chunk);
    }
    if (send.has_rate()) shape.rate_GBps = send.rate_GBps;
  }
  put_first_links_first(topology, links);
  std::vector<int> parents;
  for (std::size_t i = 0; i < links.size(); ++i) {
    const NodeId src = topology.link(links[i]).src;
    int parent = -1;
    for (std::size_t in = 0; in < i && !topology.is_gpu(src); ++in) {
      if (topology.link(links[in]).dst == src) parent = static_cast<int>(in);
    }
    parents.push_back(parent);
  }
  shape.hop = make_hop(topology, links, parents);
  if (shape.rate_GBps > 0 && !shape.hop.changes) {
    const double slower = transmission_us(1, shape.rate_GBps) / shape.hop.us_per_byte;
    shape.hop = slowed(std::move(shape.hop), std::max(1.0, slower));
  }
  return shape;
}

double own_ready_us(const Contribution& part, GpuId gpu) {
  const auto sources = part.all_sources();
  const auto at = std::ranges::find(sources, gpu);
  if (at == sources.end()) return -1;
  return part.ready_us_of(static_cast<std::size_t>(at - sources.begin()));
}

void append_transfer(const TransferSends& transfer, const TransferShape& shape, const TimedSends& before,
                     double start_us, LinkTimetable& timetable, std::int32_t& next_number,
                     std::vector<Send>& sends) {
  std::vector<Send> timed;
  timetable.reserve(shape.hop, shape.chunks.front(), shape.bytes, start_us, timed);
  for (const int s : transfer.sends) {
    const Send& old = before.sends[index(s)];
    Send now = *std::ranges::find(timed, before.link_of(old), &Send::link);
    now.chunk = old.chunk;
    now.op = old.op;
    // What meets where bandwidth changes needs numbers, those of before or its own.
    now.transfer = old.transfer != kNoTransfer || now.transfer == kNoTransfer ? old.transfer
                                                                              : now.transfer + next_number;
    if (old.has_rate() && !shape.hop.changes) now.rate_GBps = shape.hop.links.front().rate_GBps();
    sends.push_back(now);
  }
  next_number += static_cast<std::int32_t>(timed.size());
}

}  // namespace rondo
