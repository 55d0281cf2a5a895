#pragma once

#include <span>
#include <vector>

#include "orbit_hops.hpp"
#include "rondo/core/rate_account.hpp"
#include "wake_table.hpp"

namespace rondo {

/// When links are free for hops of chunks of one size; one link for each orbit, because all links of an orbit
/// are busy at the same times. No groups that share bandwidth.
class OrbitTimetable {
 public:
  /// A hop that occupies its last link this much longer than the fastest hop over that link is slow.
  static constexpr double kSlow = 1.02;

  OrbitTimetable(const Topology& topology, const FreeGroup& group, const OrbitHops& hops, double chunk_bytes,
                 int concurrency = kAnyConcurrency);

  double duration_us(int h) const { return duration_us_[static_cast<std::size_t>(h)]; }
  bool is_idle(int h, double t_us);

  /// A link orbit, and a time at which hops over it may have become idle.
  struct Wake {
    int link;
    double t_us;
  };
  /// Occupies the links of hop h from `t_us` on; appends the wakes.
  void occupy(int h, double t_us, std::vector<Wake>& wakes);
  /// GPU orbits that hops over the link orbit lead to, ascending.
  std::span<const int> receivers(int link) const { return wakes_.receivers(static_cast<std::size_t>(link)); }

  /// The first link orbit of a slow hop; of others -1.
  int slow_link(int h) const { return slow_link_[static_cast<std::size_t>(h)]; }
  /// The largest share by which the hop occupies one of its links longer than the fastest hop over it.
  double excess(int h) const { return excess_[static_cast<std::size_t>(h)]; }

 private:
  /// How a hop uses one of its links.
  struct Use {
    int link;  ///< orbit
    double offset_us;
    double occupied_us;
    HopLink part;  ///< over the representative of the orbit
  };
  std::span<const Use> uses(int h) const {
    const auto i = static_cast<std::size_t>(h);
    return std::span(uses_).subspan(first_use_[i], first_use_[i + 1] - first_use_[i]);
  }

  std::vector<double> duration_us_;     ///< per hop
  std::vector<Use> uses_;               ///< of all hops
  std::vector<std::size_t> first_use_;  ///< per hop, and the end
  std::vector<int> slow_link_;          ///< per hop
  std::vector<double> excess_;          ///< per hop
  std::vector<double> busy_until_us_;   ///< per hop: it is known not to be idle before
  std::vector<double> free_from_us_;    ///< per link orbit that is not shared
  std::vector<double> message_us_;      ///< per link orbit that is shared, for which transfers start apart
  RateAccount account_;                 ///< of representatives
  WakeTable wakes_;                     ///< link orbits, GPU orbits
};

}  // namespace rondo
