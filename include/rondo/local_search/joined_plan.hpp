#pragma once

#include <compare>
#include <optional>
#include <span>
#include <vector>

#include "rondo/core/link_timetable.hpp"
#include "rondo/local_search/joined_space.hpp"
#include "rondo/parallel/messages.hpp"

/// Plans whose transfers carry several chunks, for links that every message keeps for a while.
namespace rondo {

/// Chunks that take one hop together.
struct JoinedTransfer {
  int hop = 0;  ///< of JoinedSpace, one that represents its orbit
  int first = 0;
  int count = 0;  ///< chunks [first, first + count) of JoinedPlan::chunks
  double start_us = 0;
};

/// Smaller is better.
struct JoinedQuality {
  double finish_us = 0;
  double mean_us = 0;  ///< of the GPUs' finish times and of the ends of the links' last transfers
  friend auto operator<=>(const JoinedQuality&, const JoinedQuality&) = default;
};

struct JoinedPlan {
  std::vector<JoinedTransfer> transfers = {};  ///< by start
  std::vector<ChunkId> chunks = {};
  JoinedQuality quality = {};

  std::span<const ChunkId> chunks_of(const JoinedTransfer& t) const {
    return std::span(chunks).subspan(static_cast<std::size_t>(t.first), static_cast<std::size_t>(t.count));
  }
  std::span<const ChunkId> chunks_of(std::size_t t) const { return chunks_of(transfers[t]); }
  void add(int hop, std::span<const ChunkId> together, double start_us);
};

auto members_of(SameAs<JoinedPlan> auto& p) {
  return std::tie(p.transfers, p.chunks, p.quality);
}

/// Times plans of one space. Not for use by several threads at once.
class JoinedPlacing {
 public:
  /// `space` must outlive it.
  explicit JoinedPlacing(const JoinedSpace& space);

  /// Starts the transfers one after another in the order of `plan`, each as early as links allow once all its
  /// chunks are there; one whose chunks come from a later transfer follows that. Chunks that are there
  /// already, or that serve nothing, are left out. Returns false where transfers wait for each other or the
  /// demand is not met.
  bool place(JoinedPlan& plan);

 private:
  bool place_once(const JoinedPlan& plan);
  bool can_start(const JoinedPlan& plan, const JoinedTransfer& t) const;
  void start(const JoinedPlan& plan, const JoinedTransfer& t, LinkTimetable& timetable);
  bool leave_out_needless();
  void forget();

  const JoinedSpace& space_;
  std::size_t wanted_ = 0;            ///< deliveries
  std::vector<char> is_wanted_;       ///< per pair
  std::vector<double> first_held_;    ///< per pair: at sources their ready times, else infinity
  std::vector<double> held_us_;       ///< per pair
  std::vector<std::size_t> touched_;  ///< of held_us_
  std::vector<char> needed_;          ///< per pair
  LinkTimetable empty_;
  std::vector<double> gpu_ends_us_;  ///< per orbit of GPUs
  JoinedPlan placed_;
  std::size_t delivered_ = 0;
  std::vector<Send> sends_;
  std::vector<int> blocked_;
};

/// The plan of a schedule that the replay accepts, of all its transfers, placed. Adds hops that the schedule
/// uses and `space` lacks. Rates of transfers are left out: in a plan each is as fast as its hop. Nothing
/// where a switch copies or adds, and for sums.
std::optional<JoinedPlan> joined_plan_of(const Schedule& schedule, PlanSpace& space);

/// Of a plan of all transfers those that represent their orbits, to be placed; what starts over one hop at
/// the same time goes together. Nothing where one takes a hop that the space has no place for.
std::optional<JoinedPlan> folded(const JoinedPlan& whole, const JoinedSpace& space);

/// All images of a placed plan.
Schedule schedule_of(const JoinedPlan& plan, const JoinedSpace& space);

}  // namespace rondo
