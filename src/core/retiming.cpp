#include "rondo/core/retiming.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_map>
#include <utility>
#include <vector>

#include "rondo/core/error.hpp"
#include "rondo/core/hops.hpp"
#include "rondo/core/index.hpp"
#include "rondo/core/link_timetable.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/core/transfers.hpp"
#include "rondo/core/units.hpp"

namespace rondo {
namespace {

/// All sends of one transfer, through store-and-forward switches as well.
struct TransferSends {
  std::vector<int> sends = {};  ///< by start
  double start_us = 0;          ///< the first leaves a GPU
};

std::vector<TransferSends> by_transfer(const Topology& topology, const Demand& demand,
                                       std::span<const Send> sends) {
  const Transfers transfers = transfers_of(topology, demand, sends);
  std::map<std::pair<std::int32_t, int>, std::size_t> known;
  std::vector<TransferSends> groups;
  std::vector<int> by_start(sends.size());
  std::iota(by_start.begin(), by_start.end(), 0);
  std::ranges::stable_sort(by_start, {}, [&](int s) { return sends[index(s)].start_us; });
  for (const int s : by_start) {
    int first = s;
    while (transfers.continued[index(first)] >= 0) first = transfers.continued[index(first)];
    const std::int32_t number = sends[index(first)].transfer;
    const auto [at, is_new] = known.try_emplace(
        number == kNoTransfer ? std::pair(kNoTransfer, first) : std::pair(number, -1), groups.size());
    if (is_new) groups.push_back({{}, sends[index(s)].start_us});
    groups[at->second].sends.push_back(s);
  }
  // In the order of starts: what a transfer rests on has started before.
  std::ranges::stable_sort(groups, {}, &TransferSends::start_us);
  return groups;
}

class Retiming {
 public:
  Retiming(const TimedSends& before, const Topology& topology, const Demand& demand, int concurrency)
      : before_(before),
        sends_(before.sends),
        topology_(topology),
        demand_(demand),
        timetable_(topology, concurrency) {}

  Schedule run() {
    for (const Send& send : sends_) next_number_ = std::max(next_number_, send.transfer + 1);
    for (const TransferSends& transfer : by_transfer(before_.topology, demand_, sends_)) place(transfer);
    canonicalise(schedule_);
    return std::move(schedule_);
  }

 private:
  struct Arrival {
    double before_us;
    double now_us;
  };

  /// The links of a transfer as a hop, and its chunks.
  struct Shape {
    Hop hop = {};
    std::vector<ChunkId> chunks = {};
    double bytes = 0;
    double rate_GBps = 0;  ///< asked for; 0: none
  };

  Shape shape_of(const TransferSends& transfer) const {
    Shape shape;
    std::vector<LinkId> links;
    for (const int s : transfer.sends) {
      const Send& send = sends_[index(s)];
      if (std::ranges::find(links, link_of(send)) == links.end()) links.push_back(link_of(send));
      if (std::ranges::find(shape.chunks, send.chunk) == shape.chunks.end()) {
        shape.chunks.push_back(send.chunk);
        shape.bytes += demand_.bytes(send.chunk);
      }
      if (send.has_rate()) shape.rate_GBps = send.rate_GBps;
    }
    std::vector<int> parents;
    for (std::size_t i = 0; i < links.size(); ++i) {
      const NodeId src = topology_.link(links[i]).src;
      int parent = -1;
      for (std::size_t in = 0; in < i && !topology_.is_gpu(src); ++in) {
        if (topology_.link(links[in]).dst == src) parent = static_cast<int>(in);
      }
      parents.push_back(parent);
    }
    shape.hop = make_hop(topology_, links, parents);
    if (shape.rate_GBps > 0 && !shape.hop.changes) {
      const double slower = transmission_us(1, shape.rate_GBps) / shape.hop.us_per_byte;
      shape.hop = slowed(std::move(shape.hop), std::max(1.0, slower));
    }
    return shape;
  }

  LinkId link_of(const Send& send) const {
    return before_.links.empty() ? send.link : before_.links[send.link.index()];
  }

  /// When what leaves over `send` is there, with all that it included before.
  double available_us(const Send& send, GpuId gpu) const {
    const Contribution& part = demand_.contribution(send.chunk);
    const auto here = arrivals_.find(key(send.chunk, gpu));
    double at_us = ready_us(part, gpu);
    if (here == arrivals_.end()) return std::max(at_us, 0.0);
    double first_us = -1;
    for (const Arrival& arrival : here->second) {
      if (arrival.before_us > send.start_us && !times_equal(arrival.before_us, send.start_us)) continue;
      at_us = std::max(at_us, arrival.now_us);
      first_us = first_us < 0 ? arrival.now_us : std::min(first_us, arrival.now_us);
    }
    // Data that is no sum is there with its first copy.
    if (part.reduce) return std::max(at_us, 0.0);
    return ready_us(part, gpu) >= 0 ? ready_us(part, gpu) : std::max(first_us, 0.0);
  }

  /// -1 where the GPU is no source.
  static double ready_us(const Contribution& part, GpuId gpu) {
    const auto sources = part.all_sources();
    const auto at = std::ranges::find(sources, gpu);
    if (at == sources.end()) return -1;
    const auto s = static_cast<std::size_t>(at - sources.begin());
    return part.source_ready_us.empty() ? part.ready_us : part.source_ready_us[s];
  }

  void place(const TransferSends& transfer) {
    const Shape shape = shape_of(transfer);
    double not_before_us = 0;
    for (const int s : transfer.sends) {
      const NodeId src = topology_.link(link_of(sends_[index(s)])).src;
      if (topology_.is_gpu(src))
        not_before_us = std::max(not_before_us, available_us(sends_[index(s)], topology_.gpu_of(src)));
    }
    const double t = timetable_.earliest_start(shape.hop, shape.bytes, not_before_us);
    std::vector<Send> timed;
    timetable_.reserve(shape.hop, shape.chunks.front(), shape.bytes, t, timed);
    std::unordered_map<int, Send> on_link;
    for (const Send& send : timed) on_link.emplace(send.link.value, send);
    for (const int s : transfer.sends) {
      const Send& before = sends_[index(s)];
      Send now = on_link.at(link_of(before).value);
      now.chunk = before.chunk;
      now.op = before.op;
      // What meets where bandwidth changes needs numbers, those of before or its own.
      now.transfer = before.transfer != kNoTransfer || now.transfer == kNoTransfer
                         ? before.transfer
                         : now.transfer + next_number_;
      if (before.has_rate() && !shape.hop.changes) now.rate_GBps = shape.hop.links.front().rate_GBps();
      const NodeId dst = topology_.link(now.link).dst;
      if (topology_.is_gpu(dst))
        arrivals_[key(now.chunk, topology_.gpu_of(dst))].push_back({before.arrival_us, now.arrival_us});
      schedule_.finish_us = std::max(schedule_.finish_us, now.arrival_us);
      schedule_.sends.push_back(now);
    }
    next_number_ += static_cast<std::int32_t>(timed.size());
  }

  std::uint64_t key(ChunkId chunk, GpuId gpu) const {
    return static_cast<std::uint64_t>(chunk.index()) * topology_.num_gpus() + gpu.index();
  }

  const TimedSends& before_;
  std::span<const Send> sends_;
  const Topology& topology_;
  const Demand& demand_;
  LinkTimetable timetable_;
  std::int32_t next_number_ = 0;  ///< greater than all of before
  std::unordered_map<std::uint64_t, std::vector<Arrival>> arrivals_;
  Schedule schedule_;
};

}  // namespace

std::vector<LinkId> matching_links(const Topology& from, const Topology& to) {
  for (std::size_t n = 0; n < from.num_nodes(); ++n) {
    const bool is_there = n < to.num_nodes() && to.is_gpu(NodeId(n)) == from.is_gpu(NodeId(n));
    if (is_there && (n + 1 < from.num_nodes() || to.num_gpus() == from.num_gpus())) continue;
    throw Error(
        ExitCode::bad_data,
        fmt::format("topology '{}' has {} GPUs in {} nodes, '{}' has {} in {}, and node {} is not the same "
                    "in both; a schedule needs nodes of the same numbers",
                    from.name(), from.num_gpus(), from.num_nodes(), to.name(), to.num_gpus(), to.num_nodes(),
                    n));
  }
  std::vector<LinkId> match(from.num_links());
  std::map<std::pair<NodeId, NodeId>, std::size_t> used;
  for (std::size_t l = 0; l < match.size(); ++l) {
    const Link& link = from.links()[l];
    std::size_t skip = used[{link.src, link.dst}]++;
    for (const LinkId candidate : to.out_links(link.src)) {
      if (to.link(candidate).dst != link.dst || skip-- > 0) continue;
      match[l] = candidate;
      break;
    }
  }
  return match;
}

Schedule retimed(const TimedSends& before, const Topology& topology, const Demand& demand, int concurrency) {
  return Retiming(before, topology, demand, concurrency).run();
}

}  // namespace rondo
