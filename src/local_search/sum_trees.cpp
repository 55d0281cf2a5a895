#include "sum_trees.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "hops_by_path.hpp"
#include "rondo/core/index.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/core/transfers.hpp"

namespace rondo {
namespace {

/// One contribution a chunk, from its root to all others.
Demand spreading_from(const std::vector<GpuId>& roots, const Demand& demand) {
  std::vector<Contribution> all;
  for (std::size_t c = 0; c < roots.size(); ++c) {
    Contribution one{.origin = roots[c], .bytes = demand.bytes(ChunkId{c})};
    for (std::size_t g = 0; g < demand.num_gpus(); ++g) {
      if (GpuId{g} != roots[c]) one.destinations.emplace_back(g);
    }
    all.push_back(std::move(one));
  }
  return Demand(Collective::custom, demand.size_bytes(), demand.num_gpus(), std::move(all), 1);
}

/// Finds the trees in the deliveries of a schedule.
class SumReader {
 public:
  SumReader(const Schedule& schedule, const Topology& topology, const Demand& demand)
      : schedule_(schedule),
        transfers_(transfers_of(topology, demand, schedule.sends)),
        gpus_(topology.num_gpus()),
        into_(demand.num_chunks() * gpus_, -1),
        out_of_(into_),
        position_(transfers_.deliveries.size(), -1) {
    are_trees_ = transfers_.added_into.empty();
    for (std::size_t i = 0; i < transfers_.deliveries.size(); ++i) {
      const Delivery& d = transfers_.deliveries[i];
      int& at = d.op == SendOp::copy ? into_[place(d.chunk, d.dst)] : out_of_[place(d.chunk, d.src)];
      are_trees_ = are_trees_ && at < 0;
      at = static_cast<int>(i);
    }
  }

  /// Per chunk the GPU whose part goes nowhere and that the sum is not brought to; nothing where there is not
  /// one, or a GPU sends its part or receives the sum more than once.
  std::optional<std::vector<GpuId>> roots() const {
    if (!are_trees_) return std::nullopt;
    std::vector<GpuId> roots;
    for (std::size_t c = 0; c < into_.size() / gpus_; ++c) {
      const std::size_t before = roots.size();
      for (std::size_t g = 0; g < gpus_; ++g) {
        const bool is_root = out_of_[c * gpus_ + g] < 0;
        if (is_root != (into_[c * gpus_ + g] < 0)) return std::nullopt;
        if (is_root) roots.emplace_back(g);
      }
      if (roots.size() != before + 1) return std::nullopt;
    }
    return roots;
  }

  /// Adds hops to the space; false where a transfer takes another time than its hop.
  bool read(SumPlan& plan) {
    SumSpace& space = plan.space;
    HopsByPath hops(space.spread);
    return read_spread(hops, space, plan.trees) && read_sums(hops, space, plan.trees);
  }

 private:
  std::size_t place(ChunkId chunk, GpuId gpu) const { return chunk.index() * gpus_ + gpu.index(); }
  /// In its tree, or the plan, of what brings the sum to the GPU, or takes its part on.
  int position_of(const std::vector<int>& which, ChunkId chunk, GpuId gpu) const {
    const int delivery = which[place(chunk, gpu)];
    return delivery < 0 ? -1 : position_[index(delivery)];
  }

  bool read_spread(HopsByPath& hops, const SumSpace& space, SumTrees& trees) {
    TransferPlan plan;
    int before = -1;  // the first send of the transfer before
    int original = -1;
    for (std::size_t i = 0; i < transfers_.deliveries.size(); ++i) {
      const Delivery& d = transfers_.deliveries[i];
      if (d.op != SendOp::copy) continue;
      position_[i] = static_cast<int>(plan.transfers.size());
      const bool is_copy = d.first_send == before;
      if (!is_copy) original = position_[i];
      before = d.first_send;
      plan.transfers.push_back({d.chunk, hops.of(path_of(d, transfers_, schedule_.sends)),
                                position_of(into_, d.chunk, d.src), is_copy ? original : -1, d.start_us});
      const double arrival_us = space.spread.arrival_us(plan.transfers.back());
      if (!times_equal(arrival_us, d.arrival_us)) return false;
      double& ends_us = trees.of_chunk[d.chunk.index()].ends_us;
      ends_us = std::max(ends_us, arrival_us);
    }
    std::vector<Forest::Tree> all = Forest::trees_of(plan, space.spread);
    for (std::size_t c = 0; c < all.size(); ++c) trees.of_chunk[c].spread = std::move(all[c]);
    return true;
  }

  bool read_sums(HopsByPath& hops, const SumSpace& space, SumTrees& trees) {
    for (SumTrees::Tree& tree : trees.of_chunk) tree.begins_us = space.horizon_us;
    for (std::size_t i = transfers_.deliveries.size(); i-- > 0;) {
      const Delivery& d = transfers_.deliveries[i];
      if (d.op != SendOp::reduce) continue;
      SumTrees::Tree& tree = trees.of_chunk[d.chunk.index()];
      const int hop = hops.of(path_of(d, transfers_, schedule_.sends));
      const double arrival_us =
          d.start_us + space.spread.hops[index(hop)].duration_us(space.spread.demand.bytes(d.chunk));
      if (!times_equal(arrival_us, d.arrival_us)) return false;
      position_[i] = static_cast<int>(tree.sums.size());
      const int onward = position_of(out_of_, d.chunk, d.dst);
      tree.sums.push_back({hop, onward, -1, 0, space.horizon_us - arrival_us, space.horizon_us - d.start_us});
      tree.begins_us = std::min(tree.begins_us, d.start_us);
      if (onward < 0) tree.root.ready_us = std::max(tree.root.ready_us, arrival_us);
    }
    return true;
  }

  const Schedule& schedule_;
  Transfers transfers_;
  std::size_t gpus_;
  std::vector<int> into_;      ///< per chunk and GPU, the delivery that brings the sum
  std::vector<int> out_of_;    ///< the same, that takes its part on
  std::vector<int> position_;  ///< per delivery
  bool are_trees_ = true;
};

}  // namespace

double SumTrees::finish_us() const {
  double us = 0;
  for (const Tree& tree : of_chunk) us = std::max(us, tree.ends_us);
  return us;
}

std::optional<SumPlan> sum_plan_of(const Schedule& schedule, const Topology& topology, const Demand& demand,
                                   int concurrency) {
  SumReader reader(schedule, topology, demand);
  const auto roots = reader.roots();
  if (!roots) return std::nullopt;
  SumPlan plan{{},
               {make_plan_space(topology, spreading_from(*roots, demand), concurrency), schedule.finish_us}};
  for (const GpuId root : *roots) plan.trees.of_chunk.push_back({.root = {root}});
  if (!reader.read(plan)) return std::nullopt;
  return plan;
}

Schedule schedule_of(const SumTrees& trees, const SumSpace& space) {
  const Topology& topology = *space.spread.topology;
  const Demand& demand = space.spread.demand;
  std::vector<GpuId> roots;
  std::vector<Forest::Tree> spread;
  for (const SumTrees::Tree& tree : trees.of_chunk) {
    roots.push_back(tree.root.gpu);
    spread.push_back(tree.spread);
  }
  Schedule schedule = schedule_of(Forest::plan_of(spread), space.spread);
  number_transfers(topology, spreading_from(roots, demand), schedule.sends);
  std::int32_t number = next_transfer_number(schedule.sends);
  for (std::size_t c = 0; c < trees.of_chunk.size(); ++c) {
    for (const Forest::Branch& branch : trees.of_chunk[c].sums) {
      const std::size_t first = schedule.sends.size();
      append_sends(topology, space.spread.hops[index(branch.hop)], ChunkId{c}, demand.bytes(ChunkId{c}),
                   space.horizon_us - branch.arrival_us, schedule.sends);
      for (std::size_t s = first; s < schedule.sends.size(); ++s) {
        Send& send = schedule.sends[s];
        if (s > first && topology.node(topology.link(send.link).src).stores()) ++number;
        send.transfer = number;
      }
      schedule.sends.back().op = SendOp::reduce;
      ++number;
    }
  }
  schedule.finish_us = trees.finish_us();
  canonicalise(schedule);
  return schedule;
}

}  // namespace rondo
