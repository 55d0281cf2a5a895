#include "rondo/core/group_limits.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "rondo/core/index.hpp"
#include "rondo/core/transfers.hpp"

namespace rondo {
namespace {

/// Rates that differ by less are one.
constexpr double kSameRate = 1e-9;

/// Sends of one transfer: those that cut-through switches join, and those of one number.
class TransferSets {
 public:
  TransferSets(const Topology& topology, const Demand& demand, const std::vector<Send>& sends)
      : parent_(sends.size()) {
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
    const Transfers transfers = transfers_of(topology, demand, sends);
    std::vector<std::size_t> first_of;  // per number
    for (std::size_t s = 0; s < sends.size(); ++s) {
      const auto joins_at = [&](NodeId n) {
        return !topology.is_gpu(n) && topology.node(n).forwarding == Forwarding::cut_through;
      };
      if (transfers.continued[s] >= 0 && joins_at(topology.link(sends[s].link).src))
        join(s, index(transfers.continued[s]));
      if (!transfers.added_into.empty() && transfers.added_into[s] >= 0 &&
          joins_at(topology.link(sends[s].link).dst))
        join(s, index(transfers.added_into[s]));
      if (sends[s].transfer == kNoTransfer) continue;
      const std::size_t number = index(sends[s].transfer);
      if (number >= first_of.size()) first_of.resize(number + 1, parent_.size());
      if (first_of[number] == parent_.size()) first_of[number] = s;
      join(s, first_of[number]);
    }
  }

  std::size_t set_of(std::size_t send) {
    while (parent_[send] != send) send = parent_[send] = parent_[parent_[send]];
    return send;
  }

 private:
  void join(std::size_t a, std::size_t b) { parent_[set_of(a)] = set_of(b); }

  std::vector<std::size_t> parent_;
};

/// Per set the least bandwidth of its links.
std::vector<double> least_bandwidths(const Topology& topology, const std::vector<Send>& sends,
                                     TransferSets& sets) {
  std::vector<double> least(sends.size(), std::numeric_limits<double>::infinity());
  for (std::size_t s = 0; s < sends.size(); ++s) {
    double& rate = least[sets.set_of(s)];
    rate = std::min(rate, topology.link(sends[s].link).bandwidth_GBps);
  }
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
  TransferSets sets(within, demand, sends);
  const std::vector<double> rate = least_bandwidths(within, sends, sets);
  const std::vector<double> by_itself = least_bandwidths(topology, sends, sets);
  std::int32_t next_number = 0;
  for (const Send& send : sends) next_number = std::max(next_number, send.transfer + 1);
  std::vector<std::int32_t> number(sends.size(), kNoTransfer);
  for (std::size_t s = 0; s < sends.size(); ++s) {
    const std::size_t set = sets.set_of(s);
    if (sends[s].has_rate() || !(rate[set] < by_itself[set] * (1 - kSameRate))) continue;
    sends[s].rate_GBps = rate[set];
    if (sends[s].transfer != kNoTransfer) continue;
    if (number[set] == kNoTransfer) number[set] = next_number++;
    sends[s].transfer = number[set];
  }
}

void drop_rates(const Topology& within, const Demand& demand, std::vector<Send>& sends) {
  TransferSets sets(within, demand, sends);
  const std::vector<double> rate = least_bandwidths(within, sends, sets);
  for (std::size_t s = 0; s < sends.size(); ++s) {
    if (sends[s].has_rate() && sends[s].rate_GBps > rate[sets.set_of(s)] * (1 - kSameRate))
      sends[s].rate_GBps = std::numeric_limits<double>::quiet_NaN();
  }
}

}  // namespace rondo
