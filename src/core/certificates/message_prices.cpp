#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "kinds.hpp"
#include "rondo/core/cheapest_messages.hpp"

/// Prices over time where messages cost: FORMATS.md 3 has the arithmetic and why it holds.
namespace rondo {
namespace certificates {
namespace {

/// Of what is paid: what links earn less at least, for rounding.
constexpr double kLeastLead = 1e-8;

/// Whether a sum for several GPUs may come to a switch twice (rule 4), which no way of a message does.
bool sums_come_down(const Topology& topology) {
  const auto is_cut_through = [&](NodeId n) { return !topology.is_gpu(n) && !topology.node(n).stores(); };
  bool adds = false;
  bool linked = false;
  for (std::size_t n = 0; n < topology.num_nodes(); ++n)
    adds = adds || (is_cut_through(NodeId(n)) && topology.node(NodeId(n)).reduce);
  for (const Link& link : topology.links())
    linked = linked || (is_cut_through(link.src) && is_cut_through(link.dst));
  return adds && linked;
}

}  // namespace

double bound(const Topology& topology, const Demand& demand, const MessagePricesCertificate& certificate) {
  const std::vector<WantedBytes> wanted = wanted_bytes(topology, demand, certificate.gpu);
  CheapestMessages cheapest(topology, certificate);
  const double paid = cheapest.payments(wanted);
  if (!(paid > 0) || !(cheapest.earned() <= paid * (1 - kLeastLead))) {
    refuse_certificate(
        fmt::format("links can earn {} and the bytes have to pay {}; prices of messages prove a bound where "
                    "the bytes have to pay more",
                    cheapest.earned(), paid));
  }
  return certificate.prices.until_us;
}

}  // namespace certificates

std::vector<WantedBytes> wanted_bytes(const Topology& topology, const Demand& demand, GpuId gpu) {
  if (!gpu.valid() && !demand.is_unicast()) {
    certificates::refuse_certificate(
        "prices of messages without a GPU are for data with one source and one destination each");
  }
  if (gpu.valid() && gpu.index() >= topology.num_gpus()) {
    certificates::refuse_certificate(
        fmt::format("GPU {} does not exist; GPUs are 0 to {}", gpu.value, topology.num_gpus() - 1));
  }
  std::map<std::pair<GpuId, std::vector<WantedBytes::Source>>, double> bytes;
  const bool come_down = certificates::sums_come_down(topology);
  const auto add = [&](const Contribution& part, GpuId destination) {
    const auto gpus = part.all_sources();
    if (!part.held.empty() || (!part.reduce && gpus.size() > 1)) return;
    if (part.reduce && part.destinations.size() > 1 && come_down) return;
    std::vector<WantedBytes::Source> sources;
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      if (gpus[i] != destination) sources.push_back({gpus[i], part.ready_us_of(i)});
    }
    bytes[{destination, std::move(sources)}] += part.bytes;
  };
  for (const Contribution& part : demand.contributions()) {
    if (!gpu.valid()) {
      add(part, part.destinations.front());
    } else if (std::ranges::binary_search(part.destinations, gpu)) {
      add(part, gpu);
    }
  }
  std::vector<WantedBytes> wanted;
  for (const auto& [key, some] : bytes) wanted.push_back({key.first, key.second, some});
  return wanted;
}

}  // namespace rondo
