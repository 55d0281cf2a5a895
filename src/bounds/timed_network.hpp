#pragma once

#include <limits>
#include <utility>
#include <vector>

#include "rondo/core/collective.hpp"
#include "rondo/core/contribution_times.hpp"
#include "rondo/core/topology.hpp"

namespace rondo {

/// Data that starts at all its holders, each from its time on: any of them may send it.
struct Supply {
  double bytes = 0;
  std::vector<std::pair<NodeId, double>> holders = {};  ///< and from when, us; ascending
};

/// What links carry, as time cuts count it: bytes may be split and copied at will, and wait anywhere.
struct TimedNetwork {
  explicit TimedNetwork(const Topology& topology);
  /// Each byte counts as often as it may be the sum of contributions of `sources` when it leaves.
  TimedNetwork(const Topology& topology, const std::vector<TimedSource>& sources);

  /// Bytes that the link carries from one time to another.
  double carried(std::size_t link, double from_us, double until_us) const;

  const Topology* topology;
  std::vector<double> delay_us;  ///< per link; message costs are part of it where transfers begin
  /// Per link, at time 0. In a group whose figure is less than its links have together each has its share of
  /// the figure, which is right while all are in use.
  std::vector<double> bytes_per_us;
  bool is_exact = true;  ///< no group was shared out and no bandwidth changes
  /// Per link where contributions are counted, else empty: from when on a byte counts once, twice, ...
  std::vector<std::vector<double>> counted_from_us = {};
};

/// The time before which data cannot all be at one GPU, and what proves it.
struct QuickestFlow {
  double us = std::numeric_limits<double>::infinity();  ///< the GPU cannot be reached
  std::vector<double> alpha_us = {};                    ///< of a time cut
};

/// By temporally repeated flows: shortest augmenting paths give the most that reaches `target` by T, for all
/// T at once, as a sum of rate x max(0, T - length) (Ford and Fulkerson, "Constructing maximal dynamic flows
/// from static flows", Operations Research 6, 1958). Where that equals the bytes of all `supplies` is T in
/// closed form, and the distances in the residual network are the time cut. `work` grows by the links looked
/// at. Of bandwidth that changes the first counts, for ever.
QuickestFlow quickest_flow(const TimedNetwork& network, const std::vector<const Supply*>& supplies,
                           NodeId target, std::size_t& work);
/// The time cut of least capacity that opens `target` at `us`.
QuickestFlow narrowest_time_cut(const TimedNetwork& network, const std::vector<const Supply*>& supplies,
                                NodeId target, double us, std::size_t& work);

}  // namespace rondo
