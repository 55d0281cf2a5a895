#include "along_trees.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "deliveries.hpp"
#include "list_scheduler.hpp"
#include "rondo/core/index.hpp"
#include "rondo/core/make_set.hpp"
#include "rondo/core/retiming.hpp"
#include "rondo/core/transfers.hpp"

namespace rondo {
namespace {

/// Numbers of contributions that are one datum of the spread demand.
using Parts = std::vector<std::size_t>;

std::vector<Parts> parts_by_source(const Demand& demand) {
  std::map<std::tuple<GpuId, double, int>, Parts> by_source;
  for (std::size_t i = 0; i < demand.contributions().size(); ++i) {
    const Contribution& part = demand.contributions()[i];
    by_source[{part.origin, part.ready_us, part.tenant}].push_back(i);
  }
  std::vector<Parts> all;
  for (auto& [source, parts] : by_source) all.push_back(std::move(parts));
  return all;
}

/// Data for many passes several GPUs: in a tree that doubles with every message half of the bytes cross half
/// of its levels, which is what the one datum that stands for them weighs.
Demand spread(const Demand& demand, const std::vector<Parts>& groups) {
  std::vector<Contribution> data;
  double sum_bytes = 0;
  for (const Parts& parts : groups) {
    Contribution datum = demand.contributions()[parts.front()];
    datum.destinations.clear();
    double bytes = 0;
    for (const std::size_t i : parts) {
      const Contribution& part = demand.contributions()[i];
      bytes += part.bytes;
      datum.destinations.push_back(part.destinations.front());
    }
    make_set(datum.destinations);
    const auto count = static_cast<double>(parts.size());
    datum.bytes = bytes / count * std::max(1.0, std::log2(count + 1) / 2);
    sum_bytes += datum.bytes;
    data.push_back(std::move(datum));
  }
  return {Collective::custom, sum_bytes, demand.num_gpus(), std::move(data), 1};
}

}  // namespace

bool may_go_along_trees(const Demand& demand) {
  return demand.is_unicast() && parts_by_source(demand).size() < demand.contributions().size();
}

std::optional<Schedule> schedule_along_trees(const Topology& topology, const HopTable& hops,
                                             const Demand& demand, const ListRules& rules,
                                             const Deadline& deadline) {
  const std::vector<Parts> groups = parts_by_source(demand);
  const Demand together = spread(demand, groups);
  const Deliveries deliveries = plan_deliveries(topology, hops, together, rules.seed);
  std::optional<Schedule> trees = list_schedule(topology, hops, together, deliveries, rules, deadline);
  if (!trees) return std::nullopt;
  number_all_transfers(topology, together, trees->sends);
  const Transfers transfers = transfers_of(topology, together, trees->sends);
  const ChunkGpuTable<int> first = first_arrivals(together, transfers.deliveries);

  std::vector<Send> sends;
  const auto chunks = static_cast<std::size_t>(demand.chunks_per_contribution());
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (const std::size_t i : groups[g]) {
      const GpuId destination = demand.contributions()[i].destinations.front();
      for (int d = first(ChunkId{g}, destination); d >= 0; d = transfers.deliveries[index(d)].cause) {
        for (int s = transfers.deliveries[index(d)].last_send; s >= 0; s = transfers.continued[index(s)]) {
          Send send = trees->sends[index(s)];
          for (std::size_t c = 0; c < chunks; ++c) {
            send.chunk = ChunkId{i * chunks + c};
            sends.push_back(send);
          }
        }
      }
    }
  }
  return retimed({topology, sends}, topology, demand, rules.concurrency);
}

}  // namespace rondo
