#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rondo/core/collective.hpp"
#include "rondo/core/hops.hpp"
#include "rondo/core/round.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/core/topology.hpp"
#include "rondo/engines/engine.hpp"
#include "rondo/model/deadline.hpp"

namespace rondo {

/// Which chunk goes first among those that may be sent.
enum class ChunkOrder {
  rarest,    ///< the one with the fewest current and promised holders
  furthest,  ///< the one whose farthest waiting GPU is farthest from a holder
};

/// Which of the idle ways into a receiver is used first.
enum class SenderOrder {
  best_chunk,  ///< the one whose best chunk goes first
  fullest,     ///< the one that could carry most chunks: ways drain evenly
};

struct ListRules {
  ChunkOrder chunks = ChunkOrder::rarest;
  SenderOrder senders = SenderOrder::best_chunk;
  /// `rarest`: of chunks with equally many holders the furthest goes first, instead of chance.
  bool distance_breaks_ties = true;
  /// A way slower than the nearest holder's is used also when a promised chunk would come later than over it.
  /// Wins time where latency counts, and costs bandwidth.
  bool soonest = false;
  std::uint64_t seed = 0;
};

/// The rules of a policy of list_policies(). Throws Error(usage) for an unknown one.
ListRules list_rules(const std::string& policy, std::uint64_t seed);

/// The wanted chunks of every GPU, relays included: what the scheduler has to deliver where.
struct Deliveries {
  std::vector<std::vector<GpuId>> receivers;  ///< per contribution, ascending
};

/// Where a schedule that is already under way stands: what the scheduler continues from.
struct PartialSchedule {
  double time_us = 0;  ///< nothing more starts before
  std::vector<Holding> holdings =
      {};                           ///< who has what from when on, other than at the origin; also in flight
  std::vector<Send> on_links = {};  ///< sends that still occupy their links at `time_us` or will
};

/// Builds a schedule in continuous time, event by event: whenever links fall idle, receivers are served in
/// turn, the one that lacks most bytes first, each with the best chunk by `rules` that some GPU with an idle
/// way to it holds. A chunk goes over a hop only if no current or promised holder is nearer to the receiver
/// than the hop takes, or if the receiver's other links are busy for longer anyway. `hops` has to be the
/// table of `topology`. With `begun`, the schedule holds the further sends alone, and `finish_us` counts them
/// alone.
Schedule list_schedule(const Topology& topology, const HopTable& hops, const Demand& demand,
                       const Deliveries& deliveries, const ListRules& rules,
                       const PartialSchedule* partial = nullptr);
/// The same from the beginning; nothing where `patience` is over first.
std::optional<Schedule> list_schedule(const Topology& topology, const HopTable& hops, const Demand& demand,
                                      const Deliveries& deliveries, const ListRules& rules,
                                      const Deadline& deadline);

/// The destinations of every contribution, and the GPUs that relay to them where destinations cannot be
/// reached over one another: shortest ways from the origin, spread over the topology by the load they put on
/// links.
Deliveries plan_deliveries(const Topology& topology, const HopTable& hops, const Demand& demand,
                           std::uint64_t seed);

}  // namespace rondo
