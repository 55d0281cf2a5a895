#include "rondo/core/transposition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "rondo/core/error.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/core/transfers.hpp"

namespace rondo {
namespace {

Collective reverse_of(Collective collective) {
  if (collective == Collective::reduce_scatter) return Collective::allgather;
  if (collective == Collective::reduce) return Collective::broadcast;
  return Collective::custom;
}

void check_groups(const Topology& topology) {
  for (const SharedBandwidth& group : topology.shared_bandwidth()) {
    const std::optional<LinkId> uneven = uneven_link(topology, group);
    if (!uneven) continue;
    throw Error(
        ExitCode::unavailable,
        fmt::format("sums are scheduled backwards, which needs one latency in each group of links; in "
                    "shared_bandwidth '{}' link {} has {} us, link {} has {} us",
                    group.name, group.links.front().value, topology.link(group.links.front()).latency_us,
                    uneven->value, topology.link(*uneven).latency_us));
  }
}

/// Of sends that bring a chunk to a switch at one instant, where it is stored and copied, the first alone: it
/// serves all that leave then. Backwards what meets there becomes one sum, which leaves on one link.
std::vector<Send> one_a_meeting(const Topology& topology, const Demand& demand, std::vector<Send> sends) {
  const auto stores_and_copies = [](const Node& node) { return node.stores() && node.multicast; };
  if (std::ranges::none_of(topology.nodes(), stores_and_copies)) return sends;
  std::ranges::stable_sort(sends, {}, &Send::arrival_us);
  std::map<std::pair<ChunkId, NodeId>, double> latest_us;
  std::erase_if(sends, [&](const Send& send) {
    const NodeId at = topology.link(send.link).dst;
    if (!stores_and_copies(topology.node(at)) || demand.contribution(send.chunk).reduce) return false;
    const auto [latest, is_new] = latest_us.try_emplace({send.chunk, at}, send.arrival_us);
    if (!is_new && times_equal(latest->second, send.arrival_us)) return true;
    latest->second = send.arrival_us;
    return false;
  });
  std::ranges::stable_sort(sends, comes_before);
  return sends;
}

bool is_late(const Contribution& part) {
  return part.ready_us != 0 || std::ranges::any_of(part.source_ready_us, [](double t) { return t != 0; });
}

}  // namespace

std::optional<LinkId> uneven_link(const Topology& topology, const SharedBandwidth& group) {
  const double latency_us = topology.link(group.links.front()).latency_us;
  const auto uneven =
      std::ranges::find_if(group.links, [&](LinkId l) { return topology.link(l).latency_us != latency_us; });
  return uneven == group.links.end() ? std::nullopt : std::optional(*uneven);
}

bool is_transposable(const Topology& topology, const Demand& demand) {
  return !topology.has_bandwidth_steps() && std::ranges::none_of(demand.contributions(), is_late) &&
         std::ranges::none_of(topology.shared_bandwidth(), [&](const SharedBandwidth& group) {
           return uneven_link(topology, group).has_value();
         });
}

Topology transposed(const Topology& topology) {
  if (topology.has_bandwidth_steps()) {
    throw Error(
        ExitCode::unavailable,
        fmt::format("sums are scheduled backwards, which bandwidth_steps do not allow; topology '{}' has "
                    "some",
                    topology.name()));
  }
  check_groups(topology);
  TopologyData data = topology.data();
  for (Link& link : data.links) std::swap(link.src, link.dst);
  for (Node& node : data.nodes) {
    if (node.kind == NodeKind::switch_) std::swap(node.multicast, node.reduce);
  }
  return Topology(std::move(data));
}

Demand transposed(const Demand& demand) {
  if (demand.kind() != DemandKind::reduction && !demand.is_unicast())
    throw Error(ExitCode::internal, "only sums for one GPU each and unicast demand can be transposed");
  std::vector<Contribution> all;
  for (const Contribution& sum : demand.contributions()) {
    if (is_late(sum)) {
      throw Error(
          ExitCode::unavailable,
          "sums are scheduled backwards, which ready times other than 0 do not allow; leave them out");
    }
    Contribution spread{.origin = sum.destinations.front(), .bytes = sum.bytes};
    std::ranges::copy_if(sum.all_sources(), std::back_inserter(spread.destinations),
                         [&](GpuId g) { return g != spread.origin; });
    all.push_back(std::move(spread));
  }
  const Collective collective = reverse_of(demand.collective());
  CollectiveShape shape = demand.shape();
  if (collective == Collective::custom) shape.counts.clear();  // the contributions say it
  return Demand(collective, demand.size_bytes(), demand.num_gpus(), std::move(all),
                demand.chunks_per_contribution(), std::move(shape));
}

std::vector<Send> reversed_in_time(const Topology& transposed_topology, const Demand& transposed_demand,
                                   const std::vector<Send>& sends, double finish_us) {
  Schedule backwards{pruned(transposed_topology, transposed_demand,
                            one_a_meeting(transposed_topology, transposed_demand, sends))};
  // Which of the sums that meet in a switch are added has to be said.
  number_transfers(transposed_topology, transposed_demand, backwards.sends);
  for (Send& send : backwards.sends) {
    const double occupied_us = send.end_us - send.start_us;
    const double latency_us = transposed_topology.link(send.link).latency_us;
    send.start_us = std::max(0.0, finish_us - send.arrival_us);
    send.end_us = send.start_us + occupied_us;
    send.arrival_us = send.end_us + latency_us;
    // Backwards the send enters the node that it leaves here.
    const Node& entered = transposed_topology.node(transposed_topology.link(send.link).src);
    const bool adds = entered.kind == NodeKind::gpu || entered.multicast;
    send.op = adds ? SendOp::reduce : SendOp::copy;
  }
  canonicalise(backwards);
  return std::move(backwards.sends);
}

Certificate transposed(Certificate certificate) {
  if (auto* pair = std::get_if<LatencyCertificate>(&certificate)) std::swap(pair->source, pair->destination);
  if (auto* partition = std::get_if<PartitionCertificate>(&certificate)) partition->enter = !partition->enter;
  if (auto* time_cut = std::get_if<TimeCutCertificate>(&certificate))
    time_cut->backwards = !time_cut->backwards;
  if (auto* knowledge = std::get_if<KnowledgeCertificate>(&certificate))
    knowledge->backwards = !knowledge->backwards;
  if (auto* joint = std::get_if<JointCutsCertificate>(&certificate)) joint->backwards = !joint->backwards;
  if (auto* messages = std::get_if<MessagePricesCertificate>(&certificate))
    messages->backwards = !messages->backwards;
  return certificate;
}

}  // namespace rondo
