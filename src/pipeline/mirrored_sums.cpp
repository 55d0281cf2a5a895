#include "mirrored_sums.hpp"

#include <set>

#include "rondo/core/replay.hpp"
#include "rondo/core/transposition.hpp"

namespace rondo {
namespace {

/// Up to so many GPUs, sums have time for an order of their own, which overlaps better with what spreads
/// them.
constexpr std::size_t kFewGpus = 64;

/// Per link another one between the same nodes the other way, of the same figures; nothing where some link
/// has none, or groups share bandwidth.
std::optional<std::vector<LinkId>> opposite_links(const Topology& topology) {
  if (!topology.shared_bandwidth().empty()) return std::nullopt;
  std::vector<LinkId> opposite(topology.num_links());
  std::set<LinkId> taken;
  for (std::size_t l = 0; l < topology.num_links(); ++l) {
    const Link& link = topology.links()[l];
    for (const LinkId back : topology.out_links(link.dst)) {
      const Link& other = topology.link(back);
      if (other.dst != link.src || other.bandwidth_GBps != link.bandwidth_GBps ||
          other.latency_us != link.latency_us || other.message_us != link.message_us || taken.contains(back))
        continue;
      opposite[l] = back;
      taken.insert(back);
      break;
    }
    if (!opposite[l].valid()) return std::nullopt;
  }
  return opposite;
}

}  // namespace

std::optional<std::vector<Send>> mirrored(const Topology& topology, const Demand& gathering,
                                          const ProvenSchedule& spreading) {
  const auto opposite = opposite_links(topology);
  if (!opposite || topology.has_bandwidth_steps()) return std::nullopt;
  std::vector<Send> sends = reversed_in_time(spreading.topology, spreading.demand, spreading.schedule.sends,
                                             spreading.schedule.finish_us);
  for (Send& send : sends) {
    send.link = (*opposite)[send.link.index()];
    // On the topology itself, not the transposed one, switches that copy need not be those that add.
    const NodeId entered = topology.link(send.link).dst;
    if (topology.is_gpu(entered) || topology.node(entered).reduce) continue;
    if (topology.num_gpus() <= kFewGpus) return std::nullopt;
    send.op = SendOp::copy;
  }
  if (!replay(topology, gathering, sends).valid()) return std::nullopt;
  return sends;
}

}  // namespace rondo
