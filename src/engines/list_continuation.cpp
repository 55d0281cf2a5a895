#include "list_continuation.hpp"

#include <algorithm>
#include <tuple>

#include "rondo/engines/engines.hpp"
#include "rondo/parallel/map_parts.hpp"
#include "rondo/parallel/messages.hpp"

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

Schedule ListContinuation::go_on(const Course& course, double time_us, std::vector<Send> sends) const {
  const Begun begun = course.begun(time_us, sends);
  double landed_us = 0;
  for (const Send& send : sends) landed_us = std::max(landed_us, send.arrival_us);
  for (const Holding& holding : begun.holdings) landed_us = std::max(landed_us, holding.from_us);

  const std::vector<std::string>& policies = list_policies();
  const auto tries = static_cast<std::size_t>(std::clamp(kWork / demand_.num_deliveries(), 2.0, 60.0));
  // Each rank keeps the best of its own, of equal ones the first; only finish times travel, and the winner.
  Schedule mine;
  std::size_t my_try = tries;
  const auto outcomes = map_parts(communicator_, std::vector<double>(tries, 1.0), [&](std::size_t i) {
    Schedule rest =
        list_schedule(topology_, hops_, demand_, deliveries_,
                      list_rules(policies[i % policies.size()], seed_ + i / policies.size()), &begun);
    MessageWriter message;
    message.put(rest.finish_us);
    if (my_try == tries || std::tie(rest.finish_us, i) < std::tie(mine.finish_us, my_try)) {
      mine = std::move(rest);
      my_try = i;
    }
    return message.take();
  });
  Schedule best;
  int owner = -1;
  for (const PartOutcome& outcome : outcomes) {
    if (outcome.error) throw *outcome.error;
    const double finish_us = MessageReader(outcome.value).get<double>();
    if (owner >= 0 && finish_us >= best.finish_us) continue;
    best.finish_us = finish_us;
    owner = outcome.rank;
  }
  MessageWriter message;
  if (communicator_.rank() == owner) message.put_all(mine.sends);
  const Bytes rest = communicator_.broadcast(message.take(), owner);
  best.sends = std::move(sends);
  for (const Send& send : MessageReader(rest).get_all<std::vector<Send>>()) best.sends.push_back(send);
  best.finish_us = std::max(best.finish_us, landed_us);
  return best;
}

}  // namespace rondo
