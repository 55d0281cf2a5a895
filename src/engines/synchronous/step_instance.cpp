#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rondo/core/error.hpp"
#include "rondo/core/units.hpp"
#include "rondo/engines/synchronous.hpp"

namespace rondo {
namespace {

/// Chunks that a link may carry in a round; SCCL's fabrics have 2 at most.
constexpr double kMostChunksOfRound = 64;
/// How far the ratio of two bandwidths may be from a whole number.
constexpr double kWholeRatio = 1e-6;

double slowest_GBps(const Topology& topology) {
  return std::ranges::min_element(topology.links(), {}, &Link::bandwidth_GBps)->bandwidth_GBps;
}

int chunks_of_round(const Topology& topology, std::size_t l) {
  const double slowest = slowest_GBps(topology);
  const double ratio = topology.links()[l].bandwidth_GBps / slowest;
  const double whole = std::round(ratio);
  if (std::abs(ratio - whole) > kWholeRatio * ratio || whole > kMostChunksOfRound) {
    throw Error(
        ExitCode::unavailable,
        fmt::format("link {} of '{}' has {:.6g} GB/s, which is {:.6g} times the {:.6g} GB/s of the "
                    "slowest link; engine steps counts chunks a round, and needs a whole number up to "
                    "{:.0f}; use --engine auto, or round the bandwidths",
                    l, topology.name(), topology.links()[l].bandwidth_GBps, ratio, slowest,
                    kMostChunksOfRound));
  }
  return static_cast<int>(whole);
}

[[noreturn]] void refuse(const Topology& topology, const std::string& needed, const std::string& found) {
  throw Error(ExitCode::unavailable, fmt::format("engine steps needs {}, and '{}' has {}; use --engine auto",
                                                 needed, topology.name(), found));
}

void check(const Topology& topology, const Demand& demand) {
  for (std::size_t n = 0; n < topology.num_nodes(); ++n) {
    if (!topology.is_gpu(NodeId{n}))
      refuse(topology, "links from GPU to GPU", fmt::format("a switch (node {})", n));
  }
  if (!topology.shared_bandwidth().empty()) {
    refuse(topology, "a bandwidth for every link",
           fmt::format("the group '{}' of links that share one", topology.shared_bandwidth().front().name));
  }
  if (topology.has_bandwidth_steps()) refuse(topology, "bandwidth that never changes", "bandwidth_steps");
  if (!demand.uniform_chunk_bytes()) {
    throw Error(ExitCode::unavailable,
                "engine steps needs chunks of equal bytes, and this demand has others; use --engine auto");
  }
  for (const Contribution& c : demand.contributions()) {
    if (c.ready_us == 0 && c.source_ready_us.empty()) continue;
    throw Error(ExitCode::unavailable,
                fmt::format("engine steps needs data that are ready at 0, and those of GPU {} are ready at "
                            "{:.6g} us; use --engine auto",
                            c.origin.value, c.ready_us));
  }
}

}  // namespace

StepInstance make_step_instance(const Topology& topology, const Demand& demand, int steps, int rounds) {
  check(topology, demand);
  StepInstance instance{.num_gpus = static_cast<int>(topology.num_gpus()),
                        .chunks = demand.chunks_per_contribution(),
                        .steps = steps,
                        .rounds = rounds};
  for (std::size_t l = 0; l < topology.num_links(); ++l) {
    const Link& link = topology.links()[l];
    instance.arcs.push_back({topology.gpu_of(link.src).value, topology.gpu_of(link.dst).value});
    instance.bounds.push_back({{static_cast<int>(l)}, chunks_of_round(topology, l)});
  }
  for (const Contribution& c : demand.contributions()) {
    StepDatum datum{.origin = c.origin.value};
    for (const GpuId g : c.destinations) {
      if (g != c.origin) datum.wanted.push_back(g.value);
    }
    instance.data.push_back(std::move(datum));
  }
  return instance;
}

double step_cost_us(const Topology& topology, const Demand& demand, int steps, int rounds) {
  double step_us = 0;
  for (const Link& link : topology.links()) step_us = std::max(step_us, link.latency_us + link.message_us);
  const double round_us = transmission_us(*demand.uniform_chunk_bytes(), slowest_GBps(topology));
  return steps * step_us + rounds * round_us;
}

}  // namespace rondo
