#include "list_continuation.hpp"

#include <algorithm>
#include <utility>

#include "rondo/engines/engines.hpp"
#include "rondo/parallel/best_of_parts.hpp"

namespace rondo {
namespace {

constexpr double kWork = 2e5;  ///< sends of all schedules of one call

}  // namespace

ListContinuation::ListContinuation(const Topology& topology, const HopTable& hops, const Demand& demand,
                                   std::uint64_t seed, const Communicator& communicator)
    : topology_(topology),
      hops_(hops),
      demand_(demand),
      seed_(seed),
      communicator_(communicator),
      deliveries_(plan_deliveries(topology, hops, demand, seed)) {}

Schedule ListContinuation::resume(const CommittedSchedule& committed, double time_us,
                                  std::vector<Send> sends) const {
  const PartialSchedule partial = committed.partial(time_us, sends);
  double landed_us = 0;
  for (const Send& send : sends) landed_us = std::max(landed_us, send.arrival_us);
  for (const Holding& holding : partial.holdings) landed_us = std::max(landed_us, holding.from_us);

  const std::vector<std::string> policies = list_policies_of_models();
  const auto tries = static_cast<std::size_t>(std::clamp(kWork / demand_.num_deliveries(), 2.0, 60.0));
  auto found = best_of_parts(communicator_, tries, [&](std::size_t i) {
    Schedule rest =
        list_schedule(topology_, hops_, demand_, deliveries_,
                      list_rules(policies[i % policies.size()], seed_ + i / policies.size()), &partial);
    return std::pair(rest.finish_us, std::move(rest.sends));
  });
  const std::vector<Send> rest = shared_winner(communicator_, found);
  Schedule best;
  best.sends = std::move(sends);
  best.sends.insert(best.sends.end(), rest.begin(), rest.end());
  best.finish_us = std::max(found.quality, landed_us);
  return best;
}

}  // namespace rondo
