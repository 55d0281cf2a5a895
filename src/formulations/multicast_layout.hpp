#pragma once

#include <algorithm>
#include <vector>

#include "rondo/core/ids.hpp"
#include "rondo/model/formulation.hpp"
#include "transfer_routes.hpp"

namespace rondo {

/// Epochs first .. last, both included; empty where last < first.
struct EpochWindow {
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
/// Behind these, for chunks that a GPU of little memory only passes on (`drops`): dropped(c, g, k): 1 where
/// it held the chunk when epoch k - 1 began and no longer keeps it for k; there(c, g, i): at least 1 where
/// some of the chunk is on it at its instant i.
class MulticastLayout {
 public:
  explicit MulticastLayout(const Instance& instance);

  const Topology& topology() const { return *instance_.topology; }
  const Demand& demand() const { return instance_.demand; }
  const EpochGrid& grid() const { return *instance_.grid; }
  bool rewards_early() const { return instance_.rewards_early; }
  const std::vector<TransferRoute>& routes() const { return routes_; }
  const TransferRoute& route(int x) const { return routes_[static_cast<std::size_t>(x)]; }
  GpuId source(int x) const { return source_[static_cast<std::size_t>(x)]; }
  /// The GPU at which the route ends, or none.
  GpuId target(int x) const { return topology().gpu_of(topology().link(route(x).link).dst); }
  const std::vector<int>& routes_into(GpuId g) const { return into_[g.index()]; }

  EpochWindow start_window(ChunkId c, int x) const {
    return start_window_[contribution(c) * routes_.size() + index(x)];
  }
  EpochWindow held_window(ChunkId c, GpuId g) const {
    return held_window_[contribution(c) * num_gpus() + g.index()];
  }
  int start_column(ChunkId c, int x, int k) const {
    return start_base_[c.index() * routes_.size() + index(x)] + k - start_window(c, x).first;
  }
  int held_column(ChunkId c, GpuId g, int k) const {
    return held_base_[c.index() * num_gpus() + g.index()] + k - held_window(c, g).first;
  }
  /// Whether the GPU only passes the chunk on and has little memory for that.
  bool drops(ChunkId c, GpuId g) const {
    return !drops_.empty() && drops_[contribution(c) * num_gpus() + g.index()] != 0;
  }
  bool has_drops() const { return !drops_.empty(); }
  /// Of a chunk that the GPU drops, for epochs behind the first of its held_window.
  int dropped_column(ChunkId c, GpuId g, int k) const {
    return dropped_base_[c.index() * num_gpus() + g.index()] + k - held_window(c, g).first - 1;
  }
  int there_column(ChunkId c, GpuId g, std::size_t instant) const {
    return there_base_[c.index() * num_gpus() + g.index()] + static_cast<int>(instant);
  }
  /// When chunks may begin to fill the memory of a GPU, us; empty where it is not limited.
  const std::vector<double>& instants_us(GpuId g) const { return instants_us_[g.index()]; }
  /// From the start of a transfer until the first byte of its route x is at the GPU where that ends, us.
  double fills_us(int x) const { return route(x).offset_us + topology().link(route(x).link).latency_us; }
  double slack_us() const { return 1e-9 * grid().tau_us * std::max(1, grid().num_epochs); }
  int num_columns() const { return num_columns_; }

 private:
  static std::size_t index(int x) { return static_cast<std::size_t>(x); }
  std::size_t num_gpus() const { return topology().num_gpus(); }
  std::size_t contribution(ChunkId c) const {
    return c.index() / static_cast<std::size_t>(demand().chunks_per_contribution());
  }
  void find_windows(const std::vector<int>& distance);
  void find_drops();
  void number_columns();

  Instance instance_;
  std::vector<TransferRoute> routes_;
  std::vector<GpuId> source_;
  std::vector<std::vector<int>> into_;
  std::vector<EpochWindow> start_window_;         ///< contribution x route
  std::vector<EpochWindow> held_window_;          ///< contribution x GPU
  std::vector<int> start_base_;                   ///< chunk x route
  std::vector<int> held_base_;                    ///< chunk x GPU
  std::vector<char> drops_;                       ///< contribution x GPU; empty: none
  std::vector<std::vector<double>> instants_us_;  ///< per GPU, ascending
  std::vector<int> dropped_base_;                 ///< chunk x GPU, as there_base_; empty without drops
  std::vector<int> there_base_;
  int num_columns_ = 0;
};

}  // namespace rondo
