#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lifted_hops.hpp"
#include "rondo/core/collective.hpp"
#include "rondo/engines/engine.hpp"
#include "rondo/model/deadline.hpp"

namespace rondo {

/// Which of the chunks that a hop could carry goes first.
enum class LiftedOrder {
  rarest,    ///< the one with the fewest current and promised holders
  furthest,  ///< the one whose farthest waiting GPU is farthest from a holder
  nearest,   ///< the one whose origin is nearest to the receiver
  oldest,    ///< the one that came first to the sender
};

/// Which of the idle hops into a receiver is used first.
enum class LiftedSenders {
  best_chunk,  ///< the one whose best chunk goes first
  scarcest,    ///< the one with the fewest chunks to carry: others have more to choose from
  fullest,     ///< the one with the most: hops behind one link drain evenly
  fitting,     ///< the one that occupies its links least beyond what they need: slow ones with slow ones
};

struct LiftedRules {
  LiftedOrder order = LiftedOrder::rarest;
  LiftedSenders senders = LiftedSenders::best_chunk;
  std::uint64_t seed = 0;
};

/// List scheduling of an AllGather (every GPU has one contribution of equal size for all others) in
/// continuous time, with one decision for all translations of a transfer: when a link of an orbit falls idle,
/// all do. With the identity alone it is plain list scheduling. Every hop has a queue of the chunks that it
/// could carry, so that a decision costs no scan over chunks or GPUs but for the distances to the nearest
/// holders. The rules are those of list_schedule(): a chunk goes over a hop only if no current or promised
/// holder is nearer to the receiver than the hop takes, or if the receiver's other links are busy for longer
/// anyway. Who sends more slowly than a receiver's link could take serves those who lack no more than a
/// chunk above the mean of those it can serve. `hops` has to be of `topology` and `translations`. Returns the
/// moves that, translated (all_translations), are the schedule; nothing where `patience` is over first. No
/// shared bandwidth. Throws Error(unavailable) where the hops do not reach every GPU.
std::optional<std::vector<Move>> lifted_moves(const Topology& topology, const Translations& translations,
                                              const LiftedHops& hops, const Demand& demand,
                                              const LiftedRules& rules, const Deadline& deadline);

}  // namespace rondo
