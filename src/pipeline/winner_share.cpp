#include "winner_share.hpp"

#include <utility>

#include "rondo/core/replay_parts.hpp"
#include "rondo/pipeline/dealt_schedule.hpp"

namespace rondo {

std::optional<Schedule> share_of(const Winner& winner, EngineResult* mine, const Problem& problem,
                                 EngineRunner& runner, const RunContext& context) {
  enum Form { folded = 0, plain = 1, numbered = 2 };
  const Communicator& communicator = context.communicator;
  const Demand demand = problem.demand.with_chunks(winner.candidate.chunks);
  Form form = folded;
  if (mine != nullptr && mine->schedule)
    form = replays_in_parts(*problem.topology, demand, mine->schedule->sends) ? plain : numbered;
  form = static_cast<Form>(communicator.max(form));
  if (form == numbered) return std::nullopt;
  if (form == plain) {
    Schedule whole;
    if (mine != nullptr) std::swap(whole, *mine->schedule);
    const double finish_us = -communicator.max(mine != nullptr ? -whole.finish_us : -kInfinity);
    return Schedule{dealt(communicator, std::move(whole.sends), winner.rank, demand.num_chunks()), finish_us};
  }
  const ChunkRange own = chunks_of_rank(demand.num_chunks(), communicator.rank(), communicator.size());
  EngineResult again;
  if (mine == nullptr || !mine->folded) again = runner.rerun_folded(winner.candidate);
  const EngineResult& result = mine != nullptr && mine->folded ? *mine : again;
  if (result.folded) return Schedule{result.folded->sends_of(own), result.folded->finish_us()};
  std::erase_if(again.schedule->sends, [&](const Send& send) { return !own.contains(send.chunk); });
  return std::move(again.schedule);
}

}  // namespace rondo
