#include "rondo/pipeline/halves.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "replayed.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/replay.hpp"
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
  double end_us = 0;
  std::int32_t next_number = 0;
  for (const Send& send : first) {
    end_us = std::max(end_us, send.arrival_us);
    next_number = std::max(next_number, send.transfer + 1);
  }
  std::vector<Send> spreading = second.schedule.sends;
  number_transfers(second.topology, second.demand, spreading);
  for (Send send : spreading) {
    const double latency_us = topology.link(send.link).latency_us;
    send.end_us = end_us + send.end_us;
    send.start_us += end_us;
    send.arrival_us = send.end_us + latency_us;
    if (send.transfer != kNoTransfer) send.transfer += next_number;
    first.push_back(send);
  }
  Schedule appended{std::move(first)};
  canonicalise(appended);
  appended.finish_us = replayed_finish_us(topology, demand, appended.sends, whose);
  Schedule earlier = retimed({topology, appended.sends}, topology, demand);
  const ReplayResult replayed = replay(topology, demand, earlier.sends);
  if (!replayed.valid() || replayed.finish_us >= appended.finish_us) return appended;
  earlier.finish_us = replayed.finish_us;
  return earlier;
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
  if (of_sums > 0 && of_sums == of_results) offer(*gathering, *spreading, of_sums);
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
