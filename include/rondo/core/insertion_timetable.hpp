#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "rondo/core/hops.hpp"
#include "rondo/core/rate_account.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/core/topology.hpp"

namespace rondo {

/// The occupied intervals of every link, and the rates on links that carry several transfers at once. A later
/// reservation may be inserted into a gap before earlier ones. Read backwards, a hop occupies its links in
/// reverse order, and time runs from the finish to 0.
class InsertionTimetable {
 public:
  using Reading = RateAccount::Reading;
  static constexpr double kNoEnd = std::numeric_limits<double>::infinity();

  /// `finish_us`: from where time runs backwards, which matters where bandwidth changes.
  InsertionTimetable(const Topology& topology, Reading reading, int concurrency = kAnyConcurrency,
                     double finish_us = 0);

  /// The earliest start >= `not_before_us` of a chunk of `bytes` over `hop`; infinity where a group's shared
  /// bandwidth is below what the hop needs, or a link stays down. Unless bandwidth changes, only the links
  /// from `first_link` on count: those before carry the chunk already, and switches copy it. Where that is
  /// after `until_us`, some time after it may be returned instead.
  double earliest_start(const Hop& hop, double bytes, double not_before_us, std::size_t first_link = 0,
                        double until_us = kNoEnd) const;
  /// Whether that is `start_us` itself.
  bool is_free(const Hop& hop, double bytes, double start_us, std::size_t first_link) const;
  /// How often it was looked for on a link so far: what it took.
  std::uint64_t looks() const { return looks_; }
  void reserve(const Hop& hop, double bytes, double start_us, std::size_t first_link = 0);
  /// Takes back a reservation, of a hop whose bandwidth never changes.
  void release(const Hop& hop, double bytes, double start_us, std::size_t first_link = 0);
  /// Takes note of a send that has a rate and is under way, in any order.
  void occupy(const Send& send);
  /// Of a chunk of `bytes` that starts the hop then, as time is read.
  double duration_us(const Hop& hop, double bytes, double start_us) const {
    return hop.changes ? changing(hop, bytes, start_us).duration_us : hop.duration_us(bytes);
  }

 private:
  using Interval = RateAccount::Interval;

  /// Time from the start of `hop` until it occupies this link.
  double offset_us(const Hop& hop, const HopLink& part, double bytes) const {
    const double forwards = part.offset_us_of(bytes);
    return reading_ == Reading::forwards ? forwards
                                         : hop.duration_us(bytes) - forwards - part.occupied_us(bytes);
  }
  /// Of a hop whose bandwidth changes: the interval on each of its links.
  struct ChangingUse {
    std::vector<Interval> on_link;
    double duration_us;
  };
  ChangingUse changing(const Hop& hop, double bytes, double start_us) const;
  double earliest_changing_start(const Hop& hop, double bytes, double not_before_us) const;
  void take(const HopLink& part, double start_us, double end_us);
  /// Past `until_us` it is not looked for. `from`: the first interval that may not be over by then, null: not
  /// known; afterwards that of the room.
  double first_room(LinkId link, double start_us, double occupied_us, double until_us,
                    const Interval*& from) const;
  double first_room(LinkId link, double start_us, double occupied_us, double until_us = kNoEnd) const {
    const Interval* from = nullptr;
    return first_room(link, start_us, occupied_us, until_us, from);
  }

  const Topology& topology_;
  Reading reading_;
  double finish_us_;
  /// Per link that is not shared, ascending; adjacent intervals are merged.
  std::vector<std::vector<Interval>> taken_;
  RateAccount account_;
  mutable std::uint64_t looks_ = 0;
};

}  // namespace rondo
