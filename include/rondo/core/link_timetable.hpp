#pragma once

#include <span>
#include <vector>

#include "rondo/core/hops.hpp"
#include "rondo/core/rate_account.hpp"

namespace rondo {

/// Which links are taken until when. A link over which all transfers so far run at its bandwidth carries one
/// at a time, and times only move forward on it: a reservation starts no earlier than the last one ended.
/// Other links, and groups that share bandwidth, carry what their rates allow.
class LinkTimetable {
 public:
  explicit LinkTimetable(const Topology& topology, int concurrency = kAnyConcurrency,
                         RateAccount::Reading reading = RateAccount::Reading::forwards);

  /// From the start of a chunk of `bytes` at `t_us` to its arrival.
  double duration_us(const Hop& hop, double bytes, double t_us) const {
    return hop.changes ? changing_duration_us(hop, bytes, t_us) : hop.duration_us(bytes);
  }
  /// Whether a chunk of `bytes` may start `hop` at `t_us`.
  bool can_start(const Hop& hop, double bytes, double t_us) const;
  /// The earliest start >= `not_before_us`; where bandwidth changes, at a time when no link of the hop is
  /// down. Infinity where there is none.
  double earliest_start(const Hop& hop, double bytes, double not_before_us) const;
  /// Reserves and appends the sends, one a link and chunk; `bytes`: of all chunks together. Returns the
  /// arrival at hop.dst. Of shared links, what ends before `t_us` is not asked about any more.
  double reserve(const Hop& hop, std::span<const ChunkId> chunks, double bytes, double t_us,
                 std::vector<Send>& sends);
  double reserve(const Hop& hop, ChunkId chunk, double bytes, double t_us, std::vector<Send>& sends) {
    return reserve(hop, std::span(&chunk, 1), bytes, t_us, sends);
  }
  /// Takes note of a send of `bytes` that is reserved already, in any order. Where it has a message cost and
  /// no rate, it counts at its link's bandwidth, which is at least its rate.
  void occupy(const Send& send, double bytes);

  /// Whether the link carries several transfers at once.
  bool is_shared(LinkId link) const { return account_.is_shared(link); }
  /// The end of the last transfer.
  double free_from(LinkId link) const { return free_from_[link.index()]; }
  /// The first time after the start of a reserved send at which another may begin beside it, if there is
  /// bandwidth; its end where the link is not shared.
  double next_start_us(const Send& send) const;
  /// Of the link's bandwidth, what is left for a transfer of `bytes` that starts `hop` at `t_us`; 1 where the
  /// link is not shared.
  double share_left(const HopLink& part, double bytes, double t_us) const;

 private:
  void share(LinkId link);
  double changing_duration_us(const Hop& hop, double bytes, double t_us) const;
  double earliest_changing_start(const Hop& hop, double bytes, double not_before_us) const;

  const Topology& topology_;
  std::vector<double> free_from_;
  RateAccount account_;
};

}  // namespace rondo
