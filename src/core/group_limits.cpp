#include "rondo/core/group_limits.hpp"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

#include "rondo/core/transfers.hpp"

namespace rondo {
namespace {

/// Rates that differ by less are one.
constexpr double kSameRate = 1e-9;

/// Per send the first send of its transfer.
std::vector<std::size_t> first_of_transfer(const Topology& topology, const Demand& demand,
                                           std::vector<Send> sends) {
  number_transfers(topology, demand, sends);
  std::unordered_map<std::int32_t, std::size_t> first_of;  // of those over one link alone there is no number
  std::vector<std::size_t> first(sends.size());
  for (std::size_t s = 0; s < sends.size(); ++s)
    first[s] =
        sends[s].transfer == kNoTransfer ? s : first_of.try_emplace(sends[s].transfer, s).first->second;
  return first;
}

/// Per first send of a transfer the least bandwidth of its links.
std::vector<double> least_bandwidths(const Topology& topology, const std::vector<Send>& sends,
                                     const std::vector<std::size_t>& first) {
  std::vector<double> least(sends.size(), std::numeric_limits<double>::infinity());
  for (std::size_t s = 0; s < sends.size(); ++s)
    least[first[s]] = std::min(least[first[s]], topology.link(sends[s].link).bandwidth_GBps);
  return least;
}

}  // namespace

std::optional<Topology> within_groups(const Topology& topology) {
  if (topology.has_bandwidth_steps()) return std::nullopt;
  TopologyData data = topology.data();
  bool is_any_faster = false;
  for (const SharedBandwidth& group : topology.shared_bandwidth()) {
    for (const LinkId l : group.links) {
      double& GBps = data.links[l.index()].bandwidth_GBps;
      is_any_faster = is_any_faster || GBps > group.bandwidth_GBps;
      GBps = std::min(GBps, group.bandwidth_GBps);
    }
  }
  if (!is_any_faster) return std::nullopt;
  return Topology(std::move(data));
}

void set_rates(const Topology& topology, const Topology& within, const Demand& demand,
               std::vector<Send>& sends) {
  const std::vector<std::size_t> first = first_of_transfer(within, demand, sends);
  const std::vector<double> rate = least_bandwidths(within, sends, first);
  const std::vector<double> by_itself = least_bandwidths(topology, sends, first);
  std::int32_t next_number = next_transfer_number(sends);
  std::vector<std::int32_t> number(sends.size(), kNoTransfer);
  for (std::size_t s = 0; s < sends.size(); ++s) {
    const std::size_t f = first[s];
    if (sends[s].has_rate() || !(rate[f] < by_itself[f] * (1 - kSameRate))) continue;
    sends[s].rate_GBps = rate[f];
    if (sends[s].transfer != kNoTransfer) continue;
    if (number[f] == kNoTransfer) number[f] = next_number++;
    sends[s].transfer = number[f];
  }
}

void drop_rates(const Topology& within, const Demand& demand, std::vector<Send>& sends) {
  const std::vector<std::size_t> first = first_of_transfer(within, demand, sends);
  const std::vector<double> rate = least_bandwidths(within, sends, first);
  for (std::size_t s = 0; s < sends.size(); ++s) {
    if (sends[s].has_rate() && sends[s].rate_GBps > rate[first[s]] * (1 - kSameRate))
      sends[s].rate_GBps = std::numeric_limits<double>::quiet_NaN();
  }
}

}  // namespace rondo
