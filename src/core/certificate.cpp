#include "rondo/core/certificate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "certificates/kinds.hpp"
#include "rondo/core/subfabric.hpp"
#include "rondo/core/transposition.hpp"

namespace rondo {
namespace {

using certificates::Tail;

/// Bytes that must enter S: those of the sums for GPUs inside that have a source outside.
double bytes_entering(const Topology& topology, const Demand& demand, const std::vector<char>& inside) {
  const auto is_inside = [&](GpuId g) { return inside[topology.node_of(g).index()] != 0; };
  double bytes = 0;
  for (const Contribution& sum : demand.contributions()) {
    if (is_inside(sum.destinations.front()) && !std::ranges::all_of(sum.sources, is_inside))
      bytes += sum.bytes;
  }
  return bytes;
}

/// The transposed problem without what would keep it from being one, which weakens no bound: ready times, and
/// shared bandwidth of links whose latencies differ.
Topology transposed_links(const Topology& topology) {
  if (topology.shared_bandwidth().empty()) return transposed(topology);
  TopologyData data = topology.data();
  std::erase_if(data.shared_bandwidth,
                [&](const SharedBandwidth& group) { return uneven_link(topology, group).has_value(); });
  return transposed(Topology(std::move(data)));
}

Demand transposed_bytes(const Demand& demand) {
  std::vector<Contribution> parts = demand.contributions();
  for (Contribution& part : parts) {
    part.ready_us = 0;
    part.source_ready_us.clear();
  }
  return transposed(Demand(demand.collective(), demand.size_bytes(), demand.num_gpus(), std::move(parts),
                           demand.chunks_per_contribution(), demand.shape()));
}

void check_transposable(const Topology& topology, const Demand& demand) {
  if (demand.kind() != DemandKind::reduction && !demand.is_unicast()) {
    certificates::refuse_certificate(
        "what is proven of a source is for data with one destination each; here some data has several");
  }
  if (topology.has_bandwidth_steps())
    certificates::refuse_certificate(
        "what is proven of the transposed problem is nothing where bandwidth changes");
}

/// Prices number the groups, of which the transposed problem would have fewer.
void check_even_groups(const Topology& topology, const char* what) {
  const auto is_uneven = [&](const SharedBandwidth& group) {
    return uneven_link(topology, group).has_value();
  };
  if (std::ranges::any_of(topology.shared_bandwidth(), is_uneven)) {
    certificates::refuse_certificate(
        fmt::format("{} of sources prove nothing where links of a group differ in latency", what));
  }
}

/// Apart from the kind of demand: of a source it is one of the transposed problem.
template <class OfGpu>
double bound_of_gpu(const Topology& topology, const Demand& demand, const OfGpu& certificate) {
  if (!certificate.backwards) return certificates::bound(topology, demand, certificate);
  check_transposable(topology, demand);
  return certificates::bound(transposed_links(topology), transposed_bytes(demand), certificate);
}

double bound(const Topology& topology, const Demand& demand, const Certificate& certificate, Tail tail,
             double piece_bytes) {
  if (demand.forbids_relays()) {
    const Subfabric part(topology, demand);
    return bound(part.topology(), part.demand_of(demand), part.certificate_inside(certificate), tail,
                 piece_bytes);
  }
  if (const auto* latency = std::get_if<LatencyCertificate>(&certificate))
    return certificates::bound(topology, demand, *latency);
  if (const auto* time_cut = std::get_if<TimeCutCertificate>(&certificate))
    return bound_of_gpu(topology, demand, *time_cut);
  if (const auto* knowledge = std::get_if<KnowledgeCertificate>(&certificate))
    return bound_of_gpu(topology, demand, *knowledge);
  if (const auto* joint = std::get_if<JointCutsCertificate>(&certificate)) {
    if (joint->backwards) check_even_groups(topology, "joint cuts");
    return bound_of_gpu(topology, demand, *joint);
  }
  if (const auto* messages = std::get_if<MessagePricesCertificate>(&certificate)) {
    if (messages->backwards) check_even_groups(topology, "prices of messages");
    return bound_of_gpu(topology, demand, *messages);
  }
  if (demand.kind() == DemandKind::reduction) {
    if (topology.has_bandwidth_steps())
      certificates::refuse_certificate("a cut or metric of sums proves nothing where bandwidth changes");
    return bound(transposed_links(topology), transposed_bytes(demand), transposed(certificate), tail,
                 piece_bytes);
  }
  if (const auto* cut = std::get_if<CutCertificate>(&certificate))
    return certificates::bound(topology, demand, *cut, tail, piece_bytes);
  if (const auto* partition = std::get_if<PartitionCertificate>(&certificate))
    return certificates::bound(topology, demand, *partition, piece_bytes);
  if (const auto* prices = std::get_if<PricesCertificate>(&certificate))
    return certificates::bound(topology, demand, *prices);
  return certificates::bound(topology, demand, std::get<MetricCertificate>(certificate));
}

}  // namespace

std::string certificate_kind(const Certificate& certificate) {
  static constexpr const char* kNames[] = {"latency", "cut",       "metric",     "partition",     "time_cut",
                                           "prices",  "knowledge", "joint_cuts", "message_prices"};
  return kNames[certificate.index()];
}

double bytes_leaving(const Topology& topology, const Demand& demand, const std::vector<char>& inside) {
  if (demand.kind() == DemandKind::reduction) return bytes_entering(topology, demand, inside);
  // A pair is a contribution with one destination, so that one sum serves both kinds of demand.
  bool some_outside = false;
  for (std::size_t g = 0; g < topology.num_gpus() && !some_outside; ++g)
    some_outside = !inside[topology.node_of(GpuId(g)).index()];
  double bytes = 0;
  for (const Contribution& part : demand.contributions()) {
    if (certificates::for_everybody(topology, part)
            ? some_outside && inside[topology.node_of(part.origin).index()]
            : certificates::has_to_leave(topology, part, inside)) {
      bytes += part.bytes;
    }
  }
  return bytes;
}

double bound_of(const Topology& topology, const Demand& demand, const Certificate& certificate) {
  return bound(topology, demand, certificate, Tail::of_one_link, 0);
}

double sound_bound_of(const Topology& topology, const Demand& demand, const Certificate& certificate) {
  return bound(topology, demand, certificate, Tail::sound, 0);
}

double whole_chunk_bound_of(const Topology& topology, const Demand& demand, const Certificate& certificate) {
  return bound(topology, demand, certificate, Tail::sound, demand.uniform_chunk_bytes().value_or(0));
}

}  // namespace rondo
