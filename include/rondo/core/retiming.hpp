#pragma once

#include <span>
#include <vector>

#include "rondo/core/collective.hpp"
#include "rondo/core/rate_account.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/core/topology.hpp"

namespace rondo {

/// Sends that the replay accepts, and what they were made for.
struct TimedSends {
  const Topology& topology;
  std::span<const Send> sends;
  /// Per link of `topology`, what takes its place; empty: links of the same numbers.
  std::span<const LinkId> links = {};

  LinkId link_of(const Send& send) const { return links.empty() ? send.link : links[send.link.index()]; }
};

/// Per link of `from` the one of `to` that joins the same nodes (of several the one at the same place among
/// them); an invalid id where there is none. Throws Error(bad_data) where the GPUs have other numbers.
std::vector<LinkId> matching_links(const Topology& from, const Topology& to);

/// The same transfers over the same paths, in the same order on every link and at every GPU, each as early as
/// that allows on `topology`, whose bandwidths, latencies and message costs may be others than before, and
/// whose nodes have the same numbers: a transfer starts once all that had arrived where it starts, when it
/// started, has arrived. Rates that were asked for are kept as far as links allow. `demand` has the same
/// chunks, perhaps in other bytes. The result may be refused where a sum that arrives earlier than before
/// meets another that has yet to leave; the replay tells.
/// `concurrency`: transfers at a time on a link of a GPU.
Schedule retimed(const TimedSends& before, const Topology& topology, const Demand& demand,
                 int concurrency = kAnyConcurrency);

}  // namespace rondo
