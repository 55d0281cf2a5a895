#pragma once

#include <span>
#include <vector>

#include "rondo/core/hops.hpp"
#include "rondo/core/topology.hpp"

namespace rondo {

/// A hop and the number of its receiver: a GPU, or an orbit.
struct HopUse {
  const Hop* hop;
  std::size_t receiver;
};

/// Per hop: whether one of its links would be busy for longer than the receiver's own, and than a chunk of
/// `bytes` is on its way, if all receivers took equal parts of what they lack (bytes per receiver) from all
/// their senders, over all paths alike. Links count by their class, those of one class are used alike. Hops
/// between the same two GPUs follow one another. Never where the receiver has several links in.
///
/// A receiver behind one link has nothing else to do while it waits for a chunk that is near by: it could
/// always take it from afar. Where trunks are narrow, as in fat trees and dragonflies whose switches do not
/// copy, such copies would keep them from bringing what is not there yet.
std::vector<char> crowded_hops(const Topology& topology, std::span<const HopUse> hops,
                               std::span<const int> class_of_link, std::span<const double> lacking_bytes,
                               double bytes);
/// The same where every GPU and link counts for itself.
std::vector<char> crowded_hops(const Topology& topology, const HopTable& hops,
                               std::span<const double> lacking_bytes, double bytes);

}  // namespace rondo
