#include <fmt/format.h>

#include <algorithm>

#include "carriers.hpp"
#include "kinds.hpp"
#include "rondo/core/index.hpp"

namespace rondo::certificates {
namespace {

constexpr int kOutside = -1;

/// Checks all that does not depend on the demand and returns the number of sets.
int checked_parts(const Topology& topology, const PartitionCertificate& partition) {
  if (partition.part.size() != topology.num_nodes()) {
    refuse_certificate(fmt::format("the partition has {} entries; the fabric has {} nodes",
                                   partition.part.size(), topology.num_nodes()));
  }
  const auto num_nodes = static_cast<int>(topology.num_nodes());
  int parts = 0;
  for (std::size_t n = 0; n < partition.part.size(); ++n) {
    const int part = partition.part[n];
    if (part < kOutside || part >= num_nodes) {
      refuse_certificate(fmt::format(
          "node {} is in set {}; sets are numbered from 0, {} for a switch outside", n, part, kOutside));
    }
    parts = std::max(parts, part + 1);
    if (part != kOutside) continue;
    const Node& node = topology.nodes()[n];
    if (node.kind == NodeKind::gpu)
      refuse_certificate(fmt::format("node {} is a GPU outside; every GPU has to be in a set", n));
    if (partition.enter ? node.reduce : node.multicast) {
      refuse_certificate(
          partition.enter
              ? fmt::format("switch {} may add and is outside; then less than is counted may enter the sets",
                            n)
              : fmt::format("switch {} may copy and is outside; then less than is counted may leave the sets",
                            n));
    }
  }
  if (parts < 2) refuse_certificate(fmt::format("there are {} sets; a partition has two or more", parts));
  std::vector<char> has_gpu(index(parts), 0);
  for (const NodeId n : gpu_nodes(topology)) has_gpu[index(partition.part[n.index()])] = 1;
  if (const auto empty = std::ranges::find(has_gpu, 0); empty != has_gpu.end()) {
    refuse_certificate(
        fmt::format("set {} has no GPU; every set needs one at least", empty - has_gpu.begin()));
  }
  return parts;
}

/// Of the sums of which each set holds some data alone at first, and which each set wants.
double bytes_summed_everywhere(const Topology& topology, const Demand& demand, const std::vector<int>& part,
                               int parts) {
  const auto part_of = [&](GpuId g) { return part[topology.node_of(g).index()]; };
  const auto gives_and_wants = [&](const Contribution& sum) {
    std::vector<char> gives(index(parts), 0);
    std::vector<char> wants(index(parts), 0);
    for (const GpuId g : sum.destinations) wants[index(part_of(g))] = 1;
    if (std::ranges::find(wants, 0) != wants.end()) return false;
    for (const GpuId source : sum.sources) {
      if (sum.held.empty()) {
        gives[index(part_of(source))] = 1;
        continue;
      }
      const std::vector<GpuId> holders = holders_of(sum, source);
      const auto elsewhere = [&](GpuId g) { return part_of(g) != part_of(holders.front()); };
      if (!holders.empty() && std::ranges::none_of(holders, elsewhere))
        gives[index(part_of(holders.front()))] = 1;
    }
    return std::ranges::find(gives, 0) == gives.end();
  };
  const auto enough = static_cast<std::size_t>(parts);
  double bytes = 0;
  for (const Contribution& c : demand.contributions()) {
    if (!c.reduce || c.sources.size() < enough || c.destinations.size() < enough) continue;
    if (gives_and_wants(c)) bytes += c.bytes;
  }
  return bytes;
}

}  // namespace

double bound(const Topology& topology, const Demand& demand, const PartitionCertificate& partition,
             double piece_bytes) {
  const int parts = checked_parts(topology, partition);
  const double bytes = bytes_summed_everywhere(topology, demand, partition.part, parts);
  if (!(bytes > 0))
    refuse_certificate(
        "no sum has a source and a destination in every set (of data held elsewhere at first, none of it "
        "alone)");
  Carriers carriers;
  double least_us = kUnreachable;
  for (const Link& link : topology.links()) {
    const int from = partition.part[link.src.index()];
    const int to = partition.part[link.dst.index()];
    if (from == to || (partition.enter ? to : from) == kOutside) continue;
    carriers.add(link, 0);
    least_us = std::min(least_us, link.latency_us);
  }
  if (carriers.empty()) refuse_certificate("no link joins the sets; their GPUs cannot be reached");
  const double amount = 2.0 * (parts - 1) * bytes;
  const double us =
      piece_bytes > 0 ? carriers.time_for_whole(amount, piece_bytes) : carriers.time_for(amount);
  return checked_time(us) + least_us;
}

}  // namespace rondo::certificates
