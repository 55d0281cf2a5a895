#pragma once

#include <cstdint>
#include <vector>

#include "rondo/parallel/communicator.hpp"
#include "round_plan.hpp"

namespace rondo {

/// The best of the list scheduler's continuations of what a round has decided, tried over the ranks.
class ListContinuation {
 public:
  ListContinuation(const Topology& topology, const HopTable& hops, const Demand& demand, std::uint64_t seed,
                   const Communicator& communicator);

  /// Collective. Returns `sends`, which start at `time_us` or later, with everything that is missing after
  /// them; finish_us counts what is committed as well.
  Schedule resume(const CommittedSchedule& committed, double time_us, std::vector<Send> sends) const;

 private:
  const Topology& topology_;
  const HopTable& hops_;
  const Demand& demand_;
  std::uint64_t seed_;
  const Communicator& communicator_;
  Deliveries deliveries_;
};

}  // namespace rondo
