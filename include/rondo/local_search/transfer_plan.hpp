#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "rondo/core/collective.hpp"
#include "rondo/core/hop_timing.hpp"
#include "rondo/core/hops.hpp"
#include "rondo/core/rate_account.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/core/topology.hpp"
#include "rondo/model/deadline.hpp"

/// A schedule as the decisions behind it, for local search: which hop each chunk takes, and after which
/// transfer, independent of the engine that found it. All functions are pure.
namespace rondo {

/// A chunk over one hop.
struct PlannedTransfer {
  ChunkId chunk;
  int hop = 0;     ///< of PlanSpace::hops
  int cause = -1;  ///< the transfer that brings the chunk to where this one starts; -1: the origin
  /// The transfer of the same chunk, cause and start of which switches copy this one; the links that both
  /// begin with carry the chunk once. -1: none.
  int copy_of = -1;
  double start_us = 0;
};

/// Smaller is better.
struct PlanQuality {
  double finish_us = 0;
  /// The mean over links of (share of the finish time in which it is occupied)^8 x (end of its last
  /// transfer). It falls when a link that limits the finish time loses load, even while other links keep the
  /// finish time unchanged.
  double pressure_us = 0;
  friend auto operator<=>(const PlanQuality&, const PlanQuality&) = default;
};

struct TransferPlan {
  /// A cause precedes the transfers that it causes, and a transfer stands directly before its copies.
  std::vector<PlannedTransfer> transfers = {};
  PlanQuality quality = {};
};

/// The hops and chunks that plans of one demand consist of.
struct PlanSpace {
  const Topology* topology = nullptr;
  Demand demand;
  std::vector<Hop> hops = {};
  std::vector<std::vector<int>> into = {};  ///< hops, per GPU
  int concurrency = kAnyConcurrency;        ///< transfers at a time on a link of a GPU
  /// Hops, per source * number of GPUs + destination; empty where moves do not let switches copy.
  std::vector<std::vector<int>> between = {};
  const Deadline* deadline = nullptr;  ///< of passes on this rank; null: none
  /// Per GPU, for what it only passes on (rule 12); empty where all have room enough.
  std::vector<double> relay_bytes = {};

  bool may_copy() const { return !between.empty(); }
  const std::vector<int>& hops_between(GpuId src, GpuId dst) const {
    return between[src.index() * into.size() + dst.index()];
  }
  double bytes(const PlannedTransfer& t) const { return demand.bytes(t.chunk); }
  const Hop& hop(const PlannedTransfer& t) const { return hops[static_cast<std::size_t>(t.hop)]; }
  double duration_us(const PlannedTransfer& t) const {
    return hop(t).changes ? timing(t).arrival_us - t.start_us : hop(t).duration_us(bytes(t));
  }
  /// Of a transfer over a hop whose bandwidth changes.
  HopTiming timing(const PlannedTransfer& t) const {
    return timing_from(*topology, hop(t), bytes(t), t.start_us);
  }
  double arrival_us(const PlannedTransfer& t) const { return t.start_us + duration_us(t); }
  /// Adds a hop that is not in `hops` yet and returns its position.
  int add(Hop hop);
};

/// Thrown by passes over plans when the deadline of their space is over.
struct TimeIsOver {};

/// Called once a transfer by such a pass; asks the clock now and then.
class TimeCheck {
 public:
  explicit TimeCheck(const PlanSpace& space) : deadline_(space.deadline) {}
  void operator()() {
    constexpr std::size_t kCallsBetweenLooks = 128;
    if (deadline_ != nullptr && calls_++ % kCallsBetweenLooks == 0 && deadline_->is_over())
      throw TimeIsOver{};
  }

 private:
  const Deadline* deadline_;
  std::size_t calls_ = 0;
};

/// The hops of the topology (those of HopTable unless there are too many GPUs for a table) for plans of
/// `demand`. The topology must outlive the result.
PlanSpace make_plan_space(const Topology& topology, const Demand& demand, int concurrency = kAnyConcurrency);

/// The same hops for plans in another number of chunks.
PlanSpace with_chunks(const PlanSpace& space, int chunks_per_contribution);

/// The quality of transfers at their given starts.
PlanQuality quality_of(const std::vector<PlannedTransfer>& transfers, const PlanSpace& space);

/// The transfers of a schedule that the replay accepts, at their starts; its quality is not known.
struct PlannedOrder {
  TransferPlan plan;
  bool waits = false;  ///< in switches, or for the slowest of copies: some arrive later than their hops take
};

/// Without transfers that serve no destination. Adds hops that the schedule uses and `space` lacks. Nothing
/// where a send is part of no delivery.
std::optional<PlannedOrder> order_of(const Schedule& schedule, PlanSpace& space);

/// The plan of a schedule that the replay accepts, without transfers that serve no destination. Adds hops
/// that the schedule uses and `space` lacks. Nothing where a chunk waits in a switch, or order_of() has
/// nothing.
std::optional<TransferPlan> plan_of(const Schedule& schedule, PlanSpace& space);

Schedule schedule_of(const TransferPlan& plan, const PlanSpace& space);

/// In us, one a transfer.
std::vector<double> starts_of(const TransferPlan& plan);

/// The plan in chunks of half the bytes: both halves take the path of the whole chunk, one directly after the
/// other. Their starts only define an order. `halves`: the space with twice as many chunks.
TransferPlan split_in_halves(const TransferPlan& plan, const PlanSpace& halves);

/// Removes transfers that neither bring a chunk to a destination for the first time nor cause a transfer that
/// does.
void drop_useless(TransferPlan& plan, const PlanSpace& space);

}  // namespace rondo
