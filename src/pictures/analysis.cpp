#include "analysis.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "rondo/core/hop_timing.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/core/transfers.hpp"
#include "rondo/core/units.hpp"

namespace rondo::pictures {
namespace {

/// The sends of one link, by start, as a stack at every instant; sends that follow each other do not overlap.
void stack(const ProvenSchedule& proven, const std::vector<double>& shares, const std::vector<int>& of_link,
           std::vector<StackedPart>& parts) {
  const auto send = [&](int s) -> const Send& { return proven.schedule.sends[index(s)]; };
  std::vector<double> times;
  for (const int s : of_link) {
    times.push_back(send(s).start_us);
    times.push_back(send(s).end_us);
  }
  std::ranges::sort(times);
  std::vector<int> active;
  std::size_t next = 0;
  std::vector<std::pair<int, std::size_t>> last_part;  // per active send: its latest part
  for (std::size_t t = 0; t + 1 < times.size(); ++t) {
    if (times_equal(times[t], times[t + 1])) continue;
    std::erase_if(active,
                  [&](int s) { return send(s).end_us <= times[t] || times_equal(send(s).end_us, times[t]); });
    while (next < of_link.size() &&
           (send(of_link[next]).start_us <= times[t] || times_equal(send(of_link[next]).start_us, times[t])))
      active.push_back(of_link[next++]);
    double low = 0;
    for (const int s : active) {
      const double high = low + shares[index(s)];
      const auto known = std::ranges::find(last_part, s, &std::pair<int, std::size_t>::first);
      if (known != last_part.end() && parts[known->second].low == low) {
        parts[known->second].to_us = times[t + 1];
      } else {
        if (known != last_part.end()) last_part.erase(known);
        last_part.emplace_back(s, parts.size());
        parts.push_back({s, times[t], times[t + 1], low, high});
      }
      low = high;
    }
    std::erase_if(last_part, [&](const auto& entry) { return std::ranges::count(active, entry.first) == 0; });
  }
}

}  // namespace

std::vector<double> link_shares(const ProvenSchedule& proven) {
  std::vector<double> shares;
  for (const Send& send : proven.schedule.sends) {
    const Link& link = proven.topology.link(send.link);
    const double us = send.end_us - send.start_us - link.message_us;
    const double full_us =
        transmission_us(proven.demand.bytes(send.chunk), bandwidth_at_GBps(link, send.start_us));
    shares.push_back(us > full_us ? full_us / us : 1);
  }
  return shares;
}

std::vector<StackedPart> stacked(const ProvenSchedule& proven) {
  const std::vector<double> shares = link_shares(proven);
  std::vector<std::vector<int>> of_link(proven.topology.num_links());
  for (int s = 0; s < static_cast<int>(shares.size()); ++s)
    of_link[proven.schedule.sends[index(s)].link.index()].push_back(s);
  std::vector<StackedPart> parts;
  for (auto& sends : of_link) {
    std::ranges::stable_sort(sends, {}, [&](int s) { return proven.schedule.sends[index(s)].start_us; });
    stack(proven, shares, sends, parts);
  }
  return parts;
}

SumFacts sum_facts(const ProvenSchedule& proven) {
  SumFacts facts;
  facts.sources.assign(proven.schedule.sends.size(), 1);
  facts.adds.assign(proven.schedule.sends.size(), 0);
  for (std::size_t c = 0; c < proven.demand.num_chunks(); ++c)
    facts.complete.push_back(proven.topology.node_of(proven.demand.origin(ChunkId(c))));
  if (!proven.demand.has_several_sources()) return facts;
  const Transfers transfers = transfers_of(proven.topology, proven.demand, proven.schedule.sends);
  const std::vector<int> carried = sources_carried(proven.demand, transfers.deliveries);
  std::vector<int> of_first(facts.sources.size(), 1);
  for (std::size_t d = 0; d < carried.size(); ++d)
    of_first[index(transfers.deliveries[d].first_send)] = carried[d];
  std::vector<std::vector<int>> added_to(facts.sources.size());
  for (std::size_t s = 0; s < transfers.added_into.size(); ++s) {
    if (transfers.added_into[s] >= 0) added_to[index(transfers.added_into[s])].push_back(static_cast<int>(s));
  }
  const std::function<int(int)> sources_of = [&](int s) -> int {
    const int before = transfers.continued[index(s)];
    int all = before < 0 ? of_first[index(s)] : sources_of(before);
    for (const int other : added_to[index(s)]) all += sources_of(other);
    return all;
  };
  for (std::size_t s = 0; s < facts.sources.size(); ++s) facts.sources[s] = sources_of(static_cast<int>(s));
  const std::function<void(int)> add = [&](int s) {
    if (s < 0 || facts.adds[index(s)]) return;
    facts.adds[index(s)] = 1;
    add(transfers.continued[index(s)]);
    for (const int other : added_to[index(s)]) add(other);
  };
  for (const Delivery& delivery : transfers.deliveries) {
    if (delivery.op == SendOp::reduce) add(delivery.last_send);
  }

  const ChunkGpuTable<int> first = first_arrivals(proven.demand, transfers.deliveries);
  for (std::size_t c = 0; c < proven.demand.num_chunks(); ++c) {
    if (!proven.demand.contribution(ChunkId(c)).reduce) continue;
    double earliest_us = std::numeric_limits<double>::infinity();
    for (std::size_t g = 0; g < proven.topology.num_gpus(); ++g) {
      const int d = first(ChunkId(c), GpuId(g));
      if (d < 0 || transfers.deliveries[index(d)].arrival_us >= earliest_us) continue;
      earliest_us = transfers.deliveries[index(d)].arrival_us;
      facts.complete[c] = proven.topology.node_of(GpuId(g));
    }
  }
  return facts;
}

std::vector<LinkLoad> link_loads(const ProvenSchedule& proven) {
  std::vector<LinkLoad> loads(proven.topology.num_links());
  const std::vector<double> shares = link_shares(proven);
  for (std::size_t s = 0; s < shares.size(); ++s) {
    const Send& send = proven.schedule.sends[s];
    LinkLoad& load = loads[send.link.index()];
    load.bytes += proven.demand.bytes(send.chunk);
    load.busy_us += shares[s] * (send.end_us - send.start_us);
    ++load.sends;
  }
  return loads;
}

double axis_end_us(const ProvenSchedule& proven) {
  double end = proven.schedule.finish_us;
  for (const Send& send : proven.schedule.sends) end = std::max(end, send.arrival_us);
  return end;
}

std::vector<float> busy_shares(const ProvenSchedule& proven, const std::vector<int>& row_of_link,
                               std::size_t rows, std::size_t bins, double end_us) {
  std::vector<double> links(rows, 0);
  for (const int row : row_of_link) {
    if (row >= 0) links[static_cast<std::size_t>(row)] += 1;
  }
  std::vector<double> busy(rows * bins, 0);
  const double width = end_us / static_cast<double>(bins);
  const std::vector<double> taken = link_shares(proven);
  for (std::size_t s = 0; s < taken.size(); ++s) {
    const Send& send = proven.schedule.sends[s];
    const int row = row_of_link[send.link.index()];
    if (row < 0) continue;
    double* bin = &busy[static_cast<std::size_t>(row) * bins];
    auto b = std::min(bins - 1, static_cast<std::size_t>(send.start_us / width));
    for (; b < bins && static_cast<double>(b) * width < send.end_us; ++b) {
      const double from = std::max(send.start_us, static_cast<double>(b) * width);
      const double to = std::min(send.end_us, static_cast<double>(b + 1) * width);
      bin[b] += taken[s] * std::max(0.0, to - from);
    }
  }
  std::vector<float> shares(busy.size());
  for (std::size_t i = 0; i < busy.size(); ++i) {
    shares[i] = static_cast<float>(std::min(1.0, busy[i] / (width * std::max(1.0, links[i / bins]))));
  }
  return shares;
}

}  // namespace rondo::pictures
