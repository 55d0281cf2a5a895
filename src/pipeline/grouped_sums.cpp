#include "grouped_sums.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "in_turn.hpp"
#include "replayed.hpp"
#include "rondo/core/hops.hpp"
#include "rondo/core/interleaving.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/core/transfers.hpp"
#include "rondo/engines/exchange.hpp"

namespace rondo {
namespace {

/// Of a schedule in slices.
constexpr std::size_t kMostSendsInSlices = 60'000;

template <class Make>
Demand of_parts(const Demand& demand, const Grouping& grouping, const Make& make) {
  std::vector<Contribution> parts;
  for (const Contribution& whole : demand.contributions()) {
    for (std::size_t p = 0; p < grouping.adders.front().size(); ++p) {
      for (std::size_t g = 0; g < grouping.groups.size(); ++g) {
        Contribution part = make(g, p);
        part.bytes = whole.bytes / grouping.num_parts();
        parts.push_back(std::move(part));
      }
    }
  }
  return {Collective::custom, demand.size_bytes(), demand.num_gpus(), std::move(parts), 1, demand.shape()};
}

/// The sends of all groups, by the chunks of the whole.
void merge(const Topology& topology, const Demand& of_groups, std::size_t num_groups,
           std::vector<Send>& sends) {
  number_transfers(topology, of_groups, sends);
  const auto chunks = static_cast<std::size_t>(of_groups.chunks_per_contribution());
  for (Send& send : sends) {
    const std::size_t c = send.chunk.index();
    send.chunk = ChunkId(c / (num_groups * chunks) * chunks + c % chunks);
  }
}

std::optional<Schedule> exchanged(const Topology& topology, const Demand& whole, const Grouping& grouping,
                                  int chunks, int concurrency) {
  const HopTable hops(topology);
  const bool in_pairs = grouping.is_in_pairs();
  const ExchangeProblem problem{topology, hops, grouping.exchanging(), chunks, whole, concurrency, in_pairs};
  if (grouping.tells) return tell_by_copies(problem, grouping.groups);
  const auto levels = best_levels(problem, ordered_factorisations(static_cast<int>(grouping.groups.size())));
  if (!levels) return std::nullopt;
  std::optional<Schedule> schedule = exchange(problem, *levels);
  number_transfers(topology, whole, schedule->sends);
  return schedule;
}

/// All chunks of a part in one transfer, which pays for one message.
std::optional<Schedule> exchanged_whole(const Topology& topology, const Demand& demand,
                                        const Grouping& grouping, int chunks, int concurrency) {
  const Demand parts = demand.with_chunks(grouping.num_parts());
  std::optional<Schedule> schedule = exchanged(topology, parts, grouping, 1, concurrency);
  if (!schedule) return std::nullopt;
  number_all_transfers(topology, parts, schedule->sends);
  std::vector<Send> sends;
  for (Send send : schedule->sends) {
    const std::int32_t first = send.chunk.value * chunks;
    for (int i = 0; i < chunks; ++i) {
      send.chunk = ChunkId(first + i);
      sends.push_back(send);
    }
  }
  schedule->sends = std::move(sends);
  return schedule;
}

/// The same for each of as many slices of the chunks, one slice before the other wherever a link is free for
/// both. Nothing where that does not work.
std::optional<Schedule> in_slices(const Topology& topology, const Demand& demand,
                                  const std::vector<Send>& sends, int slices, int concurrency) {
  double end_us = 0;
  for (const Send& send : sends) end_us = std::max(end_us, send.arrival_us);
  const std::vector<Send> all = sliced(sends, slices);
  std::vector<double> keys;
  for (std::size_t i = 0; i < all.size(); ++i)
    keys.push_back(all[i].start_us + end_us * static_cast<double>(i / sends.size()));
  return accepted_if_made(topology, demand, [&] {
    return interleaved({topology, all}, topology, demand, keys, concurrency);
  });
}

}  // namespace

Demand gathering(const Demand& demand, const Grouping& grouping) {
  return of_parts(demand, grouping, [&](std::size_t g, std::size_t p) {
    Contribution sum{.origin = grouping.groups[g].front(), .destinations = {grouping.adders[g][p]}};
    sum.sources = grouping.groups[g];
    sum.reduce = true;
    return sum;
  });
}

Demand spreading(const Demand& demand, const Grouping& grouping) {
  return of_parts(demand, grouping, [&](std::size_t g, std::size_t p) {
    const GpuId taker = grouping.takers[g][p];
    Contribution result{.origin = taker};
    std::ranges::copy_if(grouping.groups[g], std::back_inserter(result.destinations),
                         [&](GpuId gpu) { return gpu != taker; });
    return result;
  });
}

std::optional<GroupedSchedule> in_groups(const Topology& topology, const Demand& demand,
                                         const Grouping& grouping, int chunks, int most_slices,
                                         int concurrency, std::vector<Send> gathered,
                                         std::vector<Send> spread) {
  const int whole_chunks = chunks * grouping.num_parts();
  const Demand whole = demand.with_chunks(whole_chunks);
  const std::size_t groups = grouping.groups.size();
  merge(topology, gathering(demand, grouping).with_chunks(chunks), groups, gathered);
  merge(topology, spreading(demand, grouping).with_chunks(chunks), groups, spread);
  std::optional<GroupedSchedule> best;
  const auto offer = [&](std::optional<Schedule> schedule, int slices) {
    if (schedule && (!best || schedule->finish_us < best->schedule.finish_us))
      best = {*std::move(schedule), whole_chunks * slices};
  };
  const auto put_together = [&](const std::vector<Send>& sums) {
    const std::vector<Send> all = grouping.tells ? sums : in_turn(topology, sums, spread);
    offer(drawn_together(topology, whole, all), 1);
    const ReplayResult appended = replay(topology, whole, all);
    if (!appended.valid()) return;
    offer(Schedule{all, appended.finish_us}, 1);
    for (int slices = 2;
         slices <= most_slices && all.size() * static_cast<std::size_t>(slices) <= kMostSendsInSlices;
         slices *= 2) {
      offer(in_slices(topology, demand.with_chunks(whole_chunks * slices), all, slices, concurrency), slices);
    }
  };
  if (groups == 1) {
    put_together(gathered);
    return best;
  }
  const auto between = exchanged(topology, whole, grouping, chunks, concurrency);
  if (between) put_together(in_turn(topology, gathered, between->sends));
  if (chunks > 1 && !grouping.tells && topology.has_message_costs()) {
    const auto at_once = exchanged_whole(topology, demand, grouping, chunks, concurrency);
    if (at_once) put_together(in_turn(topology, gathered, at_once->sends));
  }
  return best;
}

}  // namespace rondo
