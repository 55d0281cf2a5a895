#include "multicast_layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "rondo/core/error.hpp"
#include "rondo/core/relay_memory.hpp"
#include "rondo/graph/digraph.hpp"

namespace rondo {
namespace {

constexpr std::size_t kMaxRoutes = 100'000;
constexpr long long kMaxColumns = 2'000'000;
constexpr int kUnreachable = std::numeric_limits<int>::max() / 4;

/// Epochs from GPU to GPU, relayed by GPUs, without contention: source * G + destination.
std::vector<int> distances(const std::vector<TransferRoute>& routes, const std::vector<GpuId>& source,
                           const Topology& topology) {
  Digraph graph{static_cast<int>(topology.num_gpus()), {}};
  std::vector<double> length;
  for (std::size_t x = 0; x < routes.size(); ++x) {
    if (!routes[x].ends_at_gpu()) continue;
    graph.arcs.push_back({source[x].value, topology.gpu_of(topology.link(routes[x].link).dst).value});
    length.push_back(routes[x].landing);
  }
  std::vector<int> distance;
  for (int g = 0; g < graph.num_nodes; ++g) {
    for (const double d : shortest_paths(graph, length, g).distance) {
      distance.push_back(d < kUnreachable ? static_cast<int>(d) : kUnreachable);
    }
  }
  return distance;
}

}  // namespace

MulticastLayout::MulticastLayout(const Instance& instance)
    : instance_(instance), routes_(transfer_routes(*instance.topology, *instance.grid, kMaxRoutes)) {
  into_.resize(num_gpus());
  for (std::size_t x = 0; x < routes_.size(); ++x) {
    const TransferRoute& route = routes_[x];
    source_.push_back(route.parent >= 0 ? source_[index(route.parent)]
                                        : topology().gpu_of(topology().link(route.link).src));
    if (route.ends_at_gpu()) into_[target(static_cast<int>(x)).index()].push_back(static_cast<int>(x));
  }
  find_windows(distances(routes_, source_, topology()));
  find_drops();
  number_columns();
}

void MulticastLayout::find_windows(const std::vector<int>& distance) {
  const int horizon = grid().num_epochs;
  const auto epochs = [&](GpuId from, GpuId to) { return distance[from.index() * num_gpus() + to.index()]; };
  // The last epoch in which the chunk may reach `g` and still serve a destination other than `sender`.
  const auto latest = [&](const Contribution& contribution, GpuId g, GpuId sender) {
    int last = -1;
    for (const GpuId d : contribution.destinations) {
      if (d != sender) last = std::max(last, horizon - epochs(g, d));
    }
    return last;
  };
  for (const Contribution& contribution : demand().contributions()) {
    const int ready = epochs_covering(contribution.ready_us, grid().tau_us);
    const std::size_t held = held_window_.size();
    for (std::size_t g = 0; g < num_gpus(); ++g) {
      const GpuId here{g};
      held_window_.push_back(
          {ready + epochs(contribution.origin, here), latest(contribution, here, GpuId{})});
    }
    const std::size_t start = start_window_.size();
    start_window_.resize(start + routes_.size());
    for (std::size_t x = routes_.size(); x-- > 0;) {  // continuations follow the route that they continue
      const TransferRoute& route = routes_[x];
      EpochWindow& window = start_window_[start + x];
      window.first = held_window_[held + source_[x].index()].first;
      if (route.ends_at_gpu()) {
        const GpuId head = target(static_cast<int>(x));
        if (head != contribution.origin) window.last = latest(contribution, head, source_[x]) - route.landing;
      } else {
        for (const int next : route.onward)
          window.last = std::max(window.last, start_window_[start + index(next)].last);
      }
    }
  }
}

void MulticastLayout::find_drops() {
  instants_us_.resize(num_gpus());
  if (!has_limited_relays(topology(), demand())) return;
  for (const Contribution& contribution : demand().contributions()) {
    for (std::size_t g = 0; g < num_gpus(); ++g) {
      const bool is_limited = std::isfinite(topology().node(topology().node_of(GpuId{g})).relay_bytes);
      drops_.push_back(is_limited && only_relays(contribution, GpuId{g}) ? 1 : 0);
    }
  }
  const double tau_us = grid().tau_us;
  for (std::size_t g = 0; g < num_gpus(); ++g) {
    if (!std::isfinite(topology().node(topology().node_of(GpuId{g})).relay_bytes)) continue;
    std::vector<double> within_epoch;
    for (const int x : into_[g]) {
      const double epochs = std::floor((fills_us(x) + slack_us()) / tau_us);
      within_epoch.push_back(std::max(0.0, fills_us(x) - epochs * tau_us));
    }
    std::ranges::sort(within_epoch);
    const auto same = [&](double a, double b) { return b - a <= slack_us(); };
    within_epoch.erase(std::unique(within_epoch.begin(), within_epoch.end(), same), within_epoch.end());
    for (int k = 0; k < grid().num_epochs; ++k) {
      for (const double us : within_epoch) instants_us_[g].push_back(k * tau_us + us);
    }
  }
}

void MulticastLayout::number_columns() {
  long long columns = 0;
  const auto number = [&](std::vector<int>& base, EpochWindow window) {
    base.push_back(static_cast<int>(std::min(columns, kMaxColumns)));
    columns += window.size();
  };
  for (std::size_t i = 0; i < demand().num_chunks(); ++i) {
    const ChunkId c{i};
    for (std::size_t x = 0; x < routes_.size(); ++x)
      number(start_base_, start_window(c, static_cast<int>(x)));
    for (std::size_t g = 0; g < num_gpus(); ++g) {
      number(held_base_, GpuId{g} == demand().origin(c) ? EpochWindow{} : held_window(c, GpuId{g}));
    }
  }
  for (std::size_t i = 0; has_drops() && i < demand().num_chunks() * num_gpus(); ++i) {
    const ChunkId c{i / num_gpus()};
    const GpuId g{i % num_gpus()};
    const bool is_dropped = drops(c, g);
    number(dropped_base_, is_dropped ? EpochWindow{1, held_window(c, g).size() - 1} : EpochWindow{});
    number(there_base_, is_dropped ? EpochWindow{1, static_cast<int>(instants_us(g).size())} : EpochWindow{});
  }
  if (columns > kMaxColumns) {
    throw Error(
        ExitCode::unavailable,
        fmt::format(
            "the multicast MILP would have {} columns, more than the cap of {}; use engine list, fewer "
            "chunks or longer epochs",
            columns, kMaxColumns));
  }
  num_columns_ = static_cast<int>(columns);
}

}  // namespace rondo
