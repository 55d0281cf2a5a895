#include "rondo/pipeline/halves.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <span>
#include <utility>

#include "in_turn.hpp"
#include "replayed.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/retiming.hpp"
#include "rondo/core/transfers.hpp"
#include "rondo/core/transposition.hpp"
#include "rondo/core/version.hpp"
#include "rondo/pipeline/kept_schedule.hpp"

namespace rondo {
namespace {

/// What fails says that it does not work there.
template <class Make>
std::optional<ProvenSchedule> if_it_works(const Make& make) {
  try {
    return make();
  } catch (const Error& error) {
    if (error.code() != ExitCode::unavailable && error.code() != ExitCode::bad_data) throw;
    return std::nullopt;
  }
}

/// On the topology itself, of what was made for its transposed one.
ProvenSchedule timed_on(const Topology& topology, const ProvenSchedule& turned, Demand demand) {
  Schedule schedule = replayed_elsewhere(turned, topology, demand);
  return {topology, std::move(demand), std::move(schedule), std::nullopt, producer()};
}

/// Chunks a contribution in which it moves the data of `wanted`; 0: others.
int chunks_of(const ProvenSchedule* kept, const Demand& wanted) {
  if (kept == nullptr || kept->demand.num_chunks() % wanted.num_chunks() != 0) return 0;
  const int chunks = static_cast<int>(kept->demand.num_chunks() / wanted.num_chunks());
  const Demand split = wanted.with_chunks(chunks);
  for (std::size_t c = 0; c < split.num_chunks(); ++c) {
    const Contribution& here = kept->demand.contribution(ChunkId(c));
    const Contribution& there = split.contribution(ChunkId(c));
    if (here.origin != there.origin || here.destinations != there.destinations ||
        here.reduce != there.reduce || !std::ranges::equal(here.all_sources(), there.all_sources()))
      return 0;
  }
  return chunks;
}

bool are_alike(const Demand& demand, ChunkId a, ChunkId b) {
  return demand.origin(a) == demand.origin(b) && demand.bytes(a) == demand.bytes(b) &&
         std::ranges::equal(demand.destinations(a), demand.destinations(b));
}

/// Of chunks in a row that are alike in `spread`, the demand of `spreading`, the one that leaves first
/// becomes the one whose sum `gathering` has first, and so on.
void exchange_chunks(const Demand& spread, const std::vector<Send>& gathering, std::vector<Send>& spreading) {
  std::vector<double> is_there_us(spread.num_chunks(), 0);
  for (const Send& send : gathering) {
    double& us = is_there_us[send.chunk.index()];
    us = std::max(us, send.arrival_us);
  }
  std::vector<double> leaves_us(spread.num_chunks(), kInfinity);
  for (const Send& send : spreading) {
    double& us = leaves_us[send.chunk.index()];
    us = std::min(us, send.start_us);
  }
  std::vector<std::size_t> by_sum(spread.num_chunks());
  std::iota(by_sum.begin(), by_sum.end(), std::size_t{0});
  std::vector<std::size_t> by_start = by_sum;
  std::vector<ChunkId> becomes(spread.num_chunks());
  for (std::size_t first = 0, end = 0; first < becomes.size(); first = end) {
    while (end < becomes.size() && are_alike(spread, ChunkId{first}, ChunkId{end})) ++end;
    const auto sums = std::span(by_sum).subspan(first, end - first);
    const auto starts = std::span(by_start).subspan(first, end - first);
    std::ranges::stable_sort(sums, {}, [&](std::size_t c) { return is_there_us[c]; });
    std::ranges::stable_sort(starts, {}, [&](std::size_t c) { return leaves_us[c]; });
    for (std::size_t i = 0; i < sums.size(); ++i) becomes[starts[i]] = ChunkId{sums[i]};
  }
  for (Send& send : spreading) send.chunk = becomes[send.chunk.index()];
}

}  // namespace

std::optional<Halves> halves_of(const Demand& demand) {
  return halves_at(demand, demand.contributions().front().destinations);
}

std::optional<Halves> halves_at(const Demand& demand, const std::vector<GpuId>& roots) {
  const std::size_t parts = roots.size();
  const std::size_t wanting = demand.contributions().front().destinations.size();
  std::vector<Contribution> sums;
  std::vector<Contribution> results;
  for (const Contribution& whole : demand.contributions()) {
    if (!whole.reduce || !whole.held.empty() || whole.destinations.size() != wanting || wanting < 2)
      return std::nullopt;
    const bool is_all = parts == wanting;
    for (const GpuId root : is_all ? whole.destinations : roots) {
      if (!std::ranges::binary_search(whole.destinations, root)) return std::nullopt;
      Contribution sum = whole;
      sum.bytes = whole.bytes / static_cast<double>(parts);
      sum.destinations = {root};
      Contribution result{.origin = root, .bytes = sum.bytes};
      std::ranges::copy_if(whole.destinations, std::back_inserter(result.destinations),
                           [&](GpuId g) { return g != root; });
      sums.push_back(std::move(sum));
      results.push_back(std::move(result));
    }
  }
  const bool is_named = demand.collective() == Collective::allreduce && parts == wanting;
  const auto make = [&](Collective named, std::vector<Contribution> contributions) {
    return Demand(is_named ? named : Collective::custom, demand.size_bytes(), demand.num_gpus(),
                  std::move(contributions), 1, demand.shape());
  };
  return Halves{make(Collective::reduce_scatter, std::move(sums)),
                make(Collective::allgather, std::move(results)), static_cast<int>(parts)};
}

Schedule one_after_the_other(const Topology& topology, const Demand& demand, std::vector<Send> first,
                             const ProvenSchedule& second, const std::string& whose) {
  std::vector<Send> spreading = second.schedule.sends;
  number_transfers(second.topology, second.demand, spreading);
  const std::vector<Send> appended = in_turn(topology, first, spreading);
  const double appended_us = std::ranges::max_element(appended, {}, &Send::arrival_us)->arrival_us;
  exchange_chunks(second.demand, first, spreading);
  std::vector<Schedule> orders{
      retimed({topology, appended}, topology, demand),
      retimed({topology, in_turn(topology, std::move(first), spreading)}, topology, demand)};
  std::ranges::stable_sort(orders, {}, &Schedule::finish_us);
  for (Schedule& order : orders) {
    if (order.finish_us >= appended_us) break;
    if (auto drawn = accepted(topology, demand, std::move(order))) return *std::move(drawn);
  }
  return {appended, replayed_finish_us(topology, demand, appended, whose)};
}

std::optional<ProvenSchedule> sums_backwards(const ProvenSchedule& spreading, const Demand& sums) {
  return if_it_works([&] {
    const ProvenSchedule turned{transposed(spreading.topology),
                                sums,
                                {reversed_in_time(spreading.topology, spreading.demand,
                                                  spreading.schedule.sends, spreading.schedule.finish_us),
                                 spreading.schedule.finish_us}};
    return timed_on(spreading.topology, turned, sums);
  });
}

std::optional<ProvenSchedule> spreading_backwards(const ProvenSchedule& sums, const Demand& spreading) {
  return if_it_works([&] { return timed_on(sums.topology, transposed(sums), spreading); });
}

std::optional<ProvenSchedule> in_halves(const Demand& demand, const ProvenSchedule* gathering,
                                        const ProvenSchedule* spreading) {
  const std::optional<Halves> halves = halves_of(demand);
  if (!halves) return std::nullopt;
  std::optional<ProvenSchedule> best;
  const auto offer = [&](const ProvenSchedule& sums, const ProvenSchedule& results, int chunks) {
    const Topology& topology = results.topology;
    Demand whole = demand.with_chunks(chunks * halves->parts);
    Schedule joined = one_after_the_other(topology, whole, sums.schedule.sends, results, "two halves");
    if (best && best->schedule.finish_us <= joined.finish_us) return;
    best = {topology, std::move(whole), std::move(joined), std::nullopt, producer()};
  };
  const int of_sums = chunks_of(gathering, halves->gathering);
  const int of_results = chunks_of(spreading, halves->spreading);
  const int common = of_sums == 0 || of_results == 0 ? 0
                                                     : common_chunks(spreading->topology, of_sums, of_results,
                                                                     2 * halves->spreading.num_deliveries());
  if (common > 0 && of_sums == of_results) {
    offer(*gathering, *spreading, common);
  } else if (common > 0) {
    offer(cut_into(*gathering, halves->gathering, common), cut_into(*spreading, halves->spreading, common),
          common);
  }
  if (of_results > 0) {
    const auto sums = sums_backwards(*spreading, halves->gathering.with_chunks(of_results));
    if (sums) offer(*sums, *spreading, of_results);
  }
  if (of_sums > 0) {
    const auto results = spreading_backwards(*gathering, halves->spreading.with_chunks(of_sums));
    if (results) offer(*gathering, *results, of_sums);
  }
  return best;
}

}  // namespace rondo
