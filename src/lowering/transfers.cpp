#include "transfers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <queue>
#include <tuple>

#include "rondo/core/error.hpp"
#include "rondo/core/replay.hpp"

namespace rondo::lowering {
namespace {

bool not_after(double a_us, double b_us) {
  return a_us <= b_us || times_equal(a_us, b_us);
}

/// Follows the sends of one chunk through the switches.
class SwitchTracer {
 public:
  SwitchTracer(const Topology& topology, std::vector<Send> sends)
      : topology_(topology),
        sends_(std::move(sends)),
        root_(sends_.size(), kUnknown),
        uses_(sends_.size(), 0),
        entering_(topology.num_nodes()) {
    for (std::size_t i = 0; i < sends_.size(); ++i) {
      const Link& link = topology_.link(sends_[i].link);
      if (topology_.is_gpu(link.src)) root_[i] = static_cast<int>(i);
      if (!topology_.is_gpu(link.dst)) entering_[link.dst.index()].push_back(i);
    }
  }

  void append_transfers(std::vector<Transfer>& transfers) {
    // Without latency a send may leave a switch before the one that it rests on in this order.
    while (resolve_some()) {
    }
    for (std::size_t i = 0; i < sends_.size(); ++i) {
      const Link& last = topology_.link(sends_[i].link);
      if (!topology_.is_gpu(last.dst) || root_[i] == kUnknown) continue;
      const Send& first = sends_[static_cast<std::size_t>(root_[i])];
      transfers.push_back({.chunk = first.chunk.value,
                           .src = topology_.gpu_of(topology_.link(first.link).src).value,
                           .dst = topology_.gpu_of(last.dst).value,
                           .start_us = first.start_us,
                           .arrival_us = sends_[i].arrival_us});
    }
  }

 private:
  static constexpr int kUnknown = -1;

  bool feeds(const Send& in, const Send& out, Forwarding forwarding) const {
    if (forwarding == Forwarding::store_and_forward) return not_after(in.arrival_us, out.start_us);
    return times_equal(in.start_us + topology_.link(in.link).latency_us, out.start_us);
  }

  bool resolve_some() {
    bool progress = false;
    for (std::size_t i = 0; i < sends_.size(); ++i) {
      if (root_[i] != kUnknown) continue;
      const NodeId at = topology_.link(sends_[i].link).src;
      // Of several that may have fed it, the one that has fed the fewest: each has to feed somebody.
      std::size_t best = sends_.size();
      for (const std::size_t in : entering_[at.index()]) {
        if (root_[in] == kUnknown || !feeds(sends_[in], sends_[i], topology_.node(at).forwarding)) continue;
        if (best == sends_.size() || uses_[in] < uses_[best]) best = in;
      }
      if (best == sends_.size()) continue;
      ++uses_[best];
      root_[i] = root_[best];
      progress = true;
    }
    return progress;
  }

  const Topology& topology_;
  std::vector<Send> sends_;
  std::vector<int> root_;  ///< the send that left the GPU
  std::vector<int> uses_;
  std::vector<std::vector<std::size_t>> entering_;  ///< per switch
};

/// Orders by start with parents first, and renumbers the parents.
std::vector<Transfer> in_causal_order(const std::vector<Transfer>& transfers) {
  std::vector<std::vector<int>> children(transfers.size());
  using Key = std::tuple<double, double, int, int, int>;
  std::priority_queue<Key, std::vector<Key>, std::greater<>> ready;
  const auto push = [&](int t) {
    const Transfer& transfer = transfers[static_cast<std::size_t>(t)];
    ready.push({transfer.start_us, transfer.arrival_us, transfer.chunk, transfer.dst, t});
  };
  for (int t = 0; t < static_cast<int>(transfers.size()); ++t) {
    const int parent = transfers[static_cast<std::size_t>(t)].parent;
    if (parent < 0) {
      push(t);
    } else {
      children[static_cast<std::size_t>(parent)].push_back(t);
    }
  }
  std::vector<Transfer> ordered;
  std::vector<int> position(transfers.size(), -1);
  while (!ready.empty()) {
    const int t = std::get<4>(ready.top());
    ready.pop();
    position[static_cast<std::size_t>(t)] = static_cast<int>(ordered.size());
    Transfer transfer = transfers[static_cast<std::size_t>(t)];
    if (transfer.parent >= 0) transfer.parent = position[static_cast<std::size_t>(transfer.parent)];
    ordered.push_back(transfer);
    for (const int child : children[static_cast<std::size_t>(t)]) push(child);
  }
  return ordered;
}

/// Finds the tree of one chunk after another.
class TreeGrower {
 public:
  TreeGrower(const Demand& demand, const std::vector<Transfer>& all)
      : demand_(demand), all_(all), leaving_(demand.num_gpus()) {}

  /// Appends what is needed of `mine` (positions in the whole list) to `kept`.
  void grow(ChunkId chunk, const std::vector<int>& mine, std::vector<Transfer>& kept) {
    bringer_.assign(demand_.num_gpus(), kNobody);
    kept_as_.assign(demand_.num_gpus(), -1);
    for (auto& list : leaving_) list.clear();
    for (const int t : mine) leaving_[static_cast<std::size_t>(at(t).src)].push_back(t);
    arrive(demand_.origin(chunk).index(), kOrigin, demand_.ready_us(chunk));
    while (!flying_.empty()) {
      const int t = flying_.top().second;
      flying_.pop();
      const auto dst = static_cast<std::size_t>(at(t).dst);
      if (bringer_[dst] == kNobody) arrive(dst, t, at(t).arrival_us);
    }
    for (const GpuId destination : demand_.destinations(chunk)) {
      if (bringer_[destination.index()] == kNobody) {
        throw Error(ExitCode::bad_data,
                    fmt::format("chunk {} never reaches GPU {}: the schedule is not valid", chunk.value,
                                destination.value));
      }
      keep_way_to(destination.index(), kept);
    }
  }

 private:
  static constexpr int kNobody = -2;
  static constexpr int kOrigin = -1;

  const Transfer& at(int t) const { return all_[static_cast<std::size_t>(t)]; }

  void arrive(std::size_t gpu, int by, double at_us) {
    bringer_[gpu] = by;
    for (const int t : leaving_[gpu]) {
      if (not_after(at_us, at(t).start_us)) flying_.push({at(t).arrival_us, t});
    }
  }

  void keep_way_to(std::size_t gpu, std::vector<Transfer>& kept) {
    std::vector<int> path;
    while (bringer_[gpu] != kOrigin && kept_as_[gpu] < 0) {
      path.push_back(bringer_[gpu]);
      gpu = static_cast<std::size_t>(at(path.back()).src);
    }
    for (int parent = kept_as_[gpu]; !path.empty(); path.pop_back()) {
      kept.push_back(at(path.back()));
      kept.back().parent = parent;
      parent = static_cast<int>(kept.size()) - 1;
      kept_as_[static_cast<std::size_t>(kept.back().dst)] = parent;
    }
  }

  const Demand& demand_;
  const std::vector<Transfer>& all_;
  std::vector<std::vector<int>> leaving_;  ///< per GPU
  std::vector<int> bringer_;               ///< per GPU: the first arrival there
  std::vector<int> kept_as_;               ///< per GPU: the place in `kept` of the transfer that brings it
  std::priority_queue<std::pair<double, int>, std::vector<std::pair<double, int>>, std::greater<>> flying_;
};

}  // namespace

std::vector<Transfer> join_hops(const Topology& topology, std::span<const Send> sends) {
  std::vector<std::vector<Send>> of_chunk;
  for (const Send& send : sends) {
    if (send.chunk.index() >= of_chunk.size()) of_chunk.resize(send.chunk.index() + 1);
    of_chunk[send.chunk.index()].push_back(send);
  }
  std::vector<Transfer> transfers;
  for (std::vector<Send>& chunk : of_chunk) {
    std::stable_sort(chunk.begin(), chunk.end(),
                     [](const Send& a, const Send& b) { return a.start_us < b.start_us; });
    SwitchTracer(topology, std::move(chunk)).append_transfers(transfers);
  }
  return transfers;
}

std::vector<Transfer> grow_trees(const Demand& demand, const std::vector<Transfer>& transfers) {
  std::vector<std::vector<int>> of_chunk(demand.num_chunks());
  for (std::size_t t = 0; t < transfers.size(); ++t) {
    of_chunk[static_cast<std::size_t>(transfers[t].chunk)].push_back(static_cast<int>(t));
  }
  std::vector<Transfer> kept;
  TreeGrower grower(demand, transfers);
  for (std::size_t c = 0; c < of_chunk.size(); ++c) grower.grow(ChunkId(c), of_chunk[c], kept);
  return in_causal_order(kept);
}

}  // namespace rondo::lowering
