#pragma once

#include <vector>

#include "rondo/core/ids.hpp"
#include "rondo/model/formulation.hpp"
#include "transfer_routes.hpp"

namespace rondo {

/// Epochs first .. last, both included; empty where last < first.
struct Window {
  int first = 0;
  int last = -1;

  int size() const { return last < first ? 0 : last - first + 1; }
  bool contains(int epoch) const { return first <= epoch && epoch <= last; }
};

/// The columns of the multicast MILP and their positions. Columns that no useful schedule needs are left out:
/// a chunk cannot be at a GPU before its distance from the origin allows, and it is useless at a GPU that is
/// no destination of it and from which it reaches no destination in time.
///
/// start(c, x, k): 1 where chunk c starts in epoch k on the transfer that takes route x.
/// held(c, g, k): 1 where GPU g holds chunk c when epoch k begins; only for GPUs other than the origin.
class MulticastLayout {
 public:
  explicit MulticastLayout(const Instance& instance);

  const Topology& topology() const { return *instance_.topology; }
  const Demand& demand() const { return instance_.demand; }
  const EpochGrid& grid() const { return *instance_.grid; }
  const std::vector<TransferRoute>& routes() const { return routes_; }
  const TransferRoute& route(int x) const { return routes_[static_cast<std::size_t>(x)]; }
  GpuId source(int x) const { return source_[static_cast<std::size_t>(x)]; }
  /// The GPU at which the route ends, or none.
  GpuId target(int x) const { return topology().gpu_of(topology().link(route(x).link).dst); }
  const std::vector<int>& routes_into(GpuId g) const { return into_[g.index()]; }

  Window start_window(ChunkId c, int x) const {
    return start_window_[contribution(c) * routes_.size() + index(x)];
  }
  Window held_window(ChunkId c, GpuId g) const {
    return held_window_[contribution(c) * num_gpus() + g.index()];
  }
  int start_column(ChunkId c, int x, int k) const {
    return start_base_[c.index() * routes_.size() + index(x)] + k - start_window(c, x).first;
  }
  int held_column(ChunkId c, GpuId g, int k) const {
    return held_base_[c.index() * num_gpus() + g.index()] + k - held_window(c, g).first;
  }
  int num_columns() const { return num_columns_; }

 private:
  static std::size_t index(int x) { return static_cast<std::size_t>(x); }
  std::size_t num_gpus() const { return topology().num_gpus(); }
  std::size_t contribution(ChunkId c) const {
    return c.index() / static_cast<std::size_t>(demand().chunks_per_contribution());
  }
  void find_windows(const std::vector<int>& distance);
  void number_columns();

  Instance instance_;
  std::vector<TransferRoute> routes_;
  std::vector<GpuId> source_;
  std::vector<std::vector<int>> into_;
  std::vector<Window> start_window_;  ///< contribution x route
  std::vector<Window> held_window_;   ///< contribution x GPU
  std::vector<int> start_base_;       ///< chunk x route
  std::vector<int> held_base_;        ///< chunk x GPU
  int num_columns_ = 0;
};

}  // namespace rondo
