#include "merging.hpp"

#include <algorithm>
#include <tuple>
#include <vector>

#include "rondo/core/index.hpp"
#include "rondo/local_search/justification.hpp"

namespace rondo {
namespace {

constexpr int kNoPlan = -1;
constexpr int kOfIncumbent = 0;

/// The transfers of a plan, those of a chunk together, in the plan's order.
class ByChunk {
 public:
  ByChunk(const TransferPlan& plan, const PlanSpace& space)
      : plan_(&plan), first_(space.demand.num_chunks() + 1, 0) {
    for (const PlannedTransfer& t : plan.transfers) ++first_[t.chunk.index() + 1];
    for (std::size_t c = 1; c < first_.size(); ++c) first_[c] += first_[c - 1];
    std::vector<std::size_t> next = first_;
    numbers_.resize(plan.transfers.size());
    for (std::size_t i = 0; i < numbers_.size(); ++i)
      numbers_[next[plan.transfers[i].chunk.index()]++] = static_cast<int>(i);
  }

  std::span<const int> of(std::size_t chunk) const {
    return std::span(numbers_).subspan(first_[chunk], first_[chunk + 1] - first_[chunk]);
  }
  const PlannedTransfer& operator[](int transfer) const { return plan_->transfers[index(transfer)]; }

 private:
  const TransferPlan* plan_;
  std::vector<std::size_t> first_;  ///< per chunk
  std::vector<int> numbers_;
};

class Merging {
 public:
  Merging(const TransferPlan& incumbent, std::span<const TransferPlan> neighbours, const PlanSpace& space)
      : space_(space), at_(space.topology->num_gpus(), kNoPlan) {
    plans_.emplace_back(incumbent, space);
    for (const TransferPlan& plan : neighbours) plans_.emplace_back(plan, space);
    merged_.transfers.reserve(incumbent.transfers.size());
  }

  TransferPlan run() {
    for (std::size_t c = 0; c < space_.demand.num_chunks(); ++c) {
      if (!merge_by_hops(c)) take_whole(c);
    }
    return justified(placed_forward(merged_, space_, key_), space_);
  }

 private:
  std::size_t gpu_of(const PlannedTransfer& t) const { return space_.hop(t).dst.index(); }

  /// Whether plan k sends the chunk over other hops than the incumbent does.
  bool changes(std::size_t k, std::size_t c) const {
    const auto own = plans_[k].of(c);
    const auto old = plans_[kOfIncumbent].of(c);
    if (own.size() != old.size()) return true;
    std::vector<int> hops[2];
    for (const int i : own) hops[0].push_back(plans_[k][i].hop);
    for (const int i : old) hops[1].push_back(plans_[kOfIncumbent][i].hop);
    for (auto& list : hops) std::ranges::sort(list);
    return hops[0] != hops[1];
  }

  /// False where the chunk cannot be merged transfer by transfer.
  bool merge_by_hops(std::size_t c) {
    const auto old = plans_[kOfIncumbent].of(c);
    const std::size_t first = merged_.transfers.size();
    std::fill(at_.begin(), at_.end(), kNoPlan);
    for (const int i : old) {
      const PlannedTransfer& t = plans_[kOfIncumbent][i];
      at_[gpu_of(t)] = static_cast<int>(merged_.transfers.size());
      merged_.transfers.push_back(t);
      key_.push_back(t.start_us);
    }
    const auto give_up = [&] {
      merged_.transfers.resize(first);
      key_.resize(first);
      return false;
    };
    for (const int i : old) {
      if (plans_[kOfIncumbent][i].copy_of >= 0) return give_up();
    }
    for (std::size_t k = 1; k < plans_.size(); ++k) {
      if (plans_[k].of(c).size() != old.size()) return give_up();
      for (const int i : plans_[k].of(c)) {
        const PlannedTransfer& t = plans_[k][i];
        const int to = at_[gpu_of(t)];
        if (to == kNoPlan || t.copy_of >= 0) return give_up();
        const PlannedTransfer& before = plans_[kOfIncumbent][old[index(to) - first]];
        key_[index(to)] += t.start_us - before.start_us;
        int& hop = merged_.transfers[index(to)].hop;
        if (hop == before.hop) hop = t.hop;
      }
    }
    // Causes; a chunk that would have to be somewhere before it comes there has no tree.
    const GpuId origin = space_.demand.origin(ChunkId{c});
    for (std::size_t i = first; i < merged_.transfers.size(); ++i) {
      const GpuId src = space_.hop(merged_.transfers[i]).src;
      merged_.transfers[i].cause = src == origin ? -1 : at_[src.index()];
      if (src != origin && at_[src.index()] == kNoPlan) return give_up();
    }
    for (std::size_t i = first; i < merged_.transfers.size(); ++i) {
      std::size_t steps = 0;
      for (int j = static_cast<int>(i); j >= 0; j = merged_.transfers[index(j)].cause) {
        if (++steps > old.size()) return give_up();
      }
    }
    return true;
  }

  void take_whole(std::size_t c) {
    std::size_t from = kOfIncumbent;
    for (std::size_t k = plans_.size(); k-- > 1;) {
      if (changes(k, c)) from = k;
    }
    const auto own = plans_[from].of(c);
    std::vector<int> place;
    const auto base = static_cast<int>(merged_.transfers.size());
    const auto placed = [&](int i) {
      return i < 0 ? -1 : base + static_cast<int>(std::ranges::find(own, i) - own.begin());
    };
    for (const int i : own) {
      PlannedTransfer t = plans_[from][i];
      t.cause = placed(t.cause);
      t.copy_of = placed(t.copy_of);
      merged_.transfers.push_back(t);
      key_.push_back(t.start_us);
    }
  }

  const PlanSpace& space_;
  std::vector<ByChunk> plans_;  ///< the incumbent, then its neighbours
  std::vector<int> at_;         ///< per GPU: the merged transfer that brings it the chunk
  TransferPlan merged_;
  std::vector<double> key_;
};

}  // namespace

TransferPlan merged(const TransferPlan& incumbent, std::span<const TransferPlan> neighbours,
                    const PlanSpace& space) {
  return Merging(incumbent, neighbours, space).run();
}

}  // namespace rondo
