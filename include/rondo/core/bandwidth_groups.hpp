#pragma once

#include <vector>

#include "rondo/core/ids.hpp"
#include "rondo/core/topology.hpp"

namespace rondo {

/// What the groups of links that share bandwidth carry when.
class BandwidthGroups {
 public:
  explicit BandwidthGroups(const Topology& topology);

  /// The end of what stands in the way of `rate_GBps` over the link in `occupied_us` from `start_us` on;
  /// `start_us` where nothing does, infinity where a group's bandwidth is below the rate.
  double room_from(LinkId link, double start_us, double occupied_us, double rate_GBps) const;
  void add(LinkId link, double start_us, double end_us, double rate_GBps);
  /// Of the link's groups, what has ended before: it is not asked about any more.
  void forget(LinkId link, double before_us);

 private:
  struct Use {
    double start_us, end_us, rate_GBps;
  };
  struct Group {
    double bandwidth_GBps = 0;
    double longest_us = 0;       ///< use so far
    std::vector<Use> uses = {};  ///< by start
  };
  /// A negative number when nothing stands in the way.
  static double conflict_end(const Group& group, double start_us, double end_us, double rate_GBps);

  std::vector<Group> groups_;
  std::vector<std::vector<std::size_t>> of_link_;
};

}  // namespace rondo
