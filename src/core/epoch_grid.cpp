#include "rondo/core/epoch_grid.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "rondo/core/error.hpp"
#include "rondo/core/units.hpp"

namespace rondo {
namespace {

constexpr double kMaxEpochsPerLink = 1e6;

int epochs_on_link(double us, double tau_us) {
  if (us / tau_us > kMaxEpochsPerLink) {
    throw Error(
        ExitCode::unavailable,
        fmt::format("a chunk takes {:.4g} us on a link, which is more than {:.0f} epochs of {:.4g} us; take "
                    "longer epochs or more chunks",
                    us, kMaxEpochsPerLink, tau_us));
  }
  return std::max(1, epochs_covering(us, tau_us));
}

double occupied_us(const Link& link, double chunk_bytes) {
  return link.message_us + transmission_us(chunk_bytes, link.bandwidth_GBps);
}

double base_tau_us(const Topology& topology, double chunk_bytes, const EpochOptions& options) {
  if (options.rule == EpochRule::fixed) return options.tau_us;
  if (topology.num_links() == 0) {
    throw Error(ExitCode::bad_data, fmt::format("topology '{}' has no links", topology.name()));
  }
  double us = occupied_us(topology.links().front(), chunk_bytes);
  for (const Link& link : topology.links()) {
    const double of_link = occupied_us(link, chunk_bytes);
    us = options.rule == EpochRule::fastest_link ? std::min(us, of_link) : std::max(us, of_link);
  }
  return us;
}

void check(const char* option, double value) {
  if (value > 0 && std::isfinite(value)) return;
  throw Error(ExitCode::usage, fmt::format("{} is {}; it has to be positive and finite", option, value));
}

/// What becomes ready at or after the end of the epochs asked for cannot arrive within them.
void check_ready(const Demand& demand, const EpochGrid& grid) {
  if (grid.num_epochs == 0) return;
  const double end_us = grid.num_epochs * grid.tau_us;
  for (const Contribution& part : demand.contributions()) {
    const auto& times = part.source_ready_us;
    const double ready_us = times.empty() ? part.ready_us : *std::ranges::min_element(times);
    if (ready_us < end_us) continue;
    throw Error(
        ExitCode::unavailable,
        fmt::format("data of GPU {} are ready at {:.6g} us, when the {} epochs of {:.6g} us that were "
                    "asked for are over; give more epochs, or leave their number to the engine",
                    part.origin.value, ready_us, grid.num_epochs, grid.tau_us));
  }
}

/// Whether links never stand in each other's way, so that a chunk can go down a tree of paths at once.
bool carries_trees(const Topology& topology) {
  return topology.shared_bandwidth().empty() &&
         std::all_of(topology.nodes().begin(), topology.nodes().end(),
                     [](const Node& node) { return node.kind == NodeKind::gpu || node.multicast; });
}

}  // namespace

int epochs_covering(double us, double tau_us, double slack) {
  const double epochs = us / tau_us;
  return static_cast<int>(std::ceil(epochs - slack * std::max(1.0, epochs)));
}

std::vector<int> flow_landing_epochs(const Topology& topology, double tau_us) {
  const auto enters_cut_through = [&](const Link& link) {
    const Node& node = topology.node(link.dst);
    return node.kind == NodeKind::switch_ && node.forwarding == Forwarding::cut_through;
  };
  std::vector<double> carried_us(topology.num_nodes(), 0.0);
  for (const Link& link : topology.links()) {
    if (!topology.is_gpu(link.src) || !enters_cut_through(link)) continue;
    double& carried = carried_us[link.dst.index()];
    carried = std::max(carried, link.latency_us);
  }
  std::vector<int> landing;
  for (const Link& link : topology.links()) {
    const double us = link.latency_us + carried_us[link.src.index()];
    if (!enters_cut_through(link)) {
      landing.push_back(1 + epochs_covering(us, tau_us));
    } else {
      landing.push_back(topology.is_gpu(link.src) ? 0 : epochs_covering(us, tau_us));
    }
  }
  return landing;
}

EpochGrid make_epoch_grid(const Topology& topology, const Demand& demand, const EpochOptions& options) {
  check("the epoch multiplier", options.multiplier);
  if (options.rule == EpochRule::fixed) check("the epoch (tau, us)", options.tau_us);
  if (options.num_epochs < 0) {
    throw Error(ExitCode::usage,
                fmt::format("the number of epochs is {}; it has to be positive, or 0 to have it found",
                            options.num_epochs));
  }
  const std::optional<double> chunk_bytes = demand.uniform_chunk_bytes();
  if (!chunk_bytes) {
    throw Error(ExitCode::unavailable, "a time-expanded model needs chunks of one size; these differ");
  }
  EpochGrid grid;
  grid.chunk_bytes = *chunk_bytes;
  grid.tau_us = base_tau_us(topology, *chunk_bytes, options) * options.multiplier;
  grid.num_epochs = options.num_epochs;
  check_ready(demand, grid);
  grid.occupancy.reserve(topology.num_links());
  grid.landing.reserve(topology.num_links());
  for (const Link& link : topology.links()) {
    const double us = occupied_us(link, *chunk_bytes);
    grid.occupancy.push_back(epochs_on_link(us, grid.tau_us));
    grid.landing.push_back(epochs_on_link(us + link.latency_us, grid.tau_us));
  }
  return grid;
}

int upper_bound_epochs(const Topology& topology, const Demand& demand, const EpochGrid& grid) {
  check_reachable(topology, demand);
  const bool trees = carries_trees(topology);
  const std::vector<double> length(grid.landing.begin(), grid.landing.end());
  std::vector<std::optional<ShortestPaths>> paths(topology.num_gpus());  // per origin, found once
  double latest_ready_us = 0;
  double epochs = 0;
  for (const Contribution& c : demand.contributions()) {
    auto& from = paths[c.origin.index()];
    if (!from) from = shortest_paths(topology.graph(), length, topology.node_of(c.origin).value);
    double chunk_epochs = 0;
    for (const GpuId d : c.destinations) {
      const double distance = from->distance[topology.node_of(d).index()];
      chunk_epochs = trees ? std::max(chunk_epochs, distance) : chunk_epochs + distance;
    }
    epochs += chunk_epochs * demand.chunks_per_contribution();
    latest_ready_us = std::max(latest_ready_us, c.ready_us);
  }
  epochs += std::ceil(latest_ready_us / grid.tau_us);
  if (epochs > std::numeric_limits<int>::max()) {
    throw Error(ExitCode::unavailable, fmt::format("{:.4g} epochs are too many; take longer epochs", epochs));
  }
  return static_cast<int>(epochs);
}

Topology snap_to_grid(const Topology& topology, const EpochGrid& grid) {
  TopologyData data = topology.data();
  for (std::size_t l = 0; l < data.links.size(); ++l) {
    const double occupied_us = grid.occupancy[l] * grid.tau_us;
    data.links[l].bandwidth_GBps = grid.chunk_bytes / (occupied_us * kBytesPerUsPerGBps);
    data.links[l].latency_us = (grid.landing[l] - grid.occupancy[l]) * grid.tau_us;
    data.links[l].message_us = 0;  // part of the occupancy
  }
  return Topology(std::move(data));
}

}  // namespace rondo
