#include "multicast_memory.hpp"

#include <algorithm>
#include <cmath>

#include "rondo/core/index.hpp"

namespace rondo {
namespace {

/// Visits the start columns of a chunk and route whose transfer has begun at `begin_us` after its start, not
/// ended at `end_us` after it, at the instant.
template <class Visit>
void for_each_at(const MulticastLayout& layout, ChunkId c, int x, double instant_us, double begin_us,
                 double end_us, const Visit& visit) {
  const double tau_us = layout.grid().tau_us;
  const double at_us = instant_us + layout.slack_us();
  const EpochWindow window = layout.start_window(c, x);
  const int last = std::min(window.last, static_cast<int>(std::floor((at_us - begin_us) / tau_us)));
  for (int k = last; k >= window.first && k * tau_us + end_us > at_us + layout.slack_us(); --k)
    visit(layout.start_column(c, x, k));
}

/// What begins to come into a GPU counts from then to the epoch in which it may be sent on.
template <class Visit>
void for_each_filling(const MulticastLayout& layout, ChunkId c, GpuId g, double instant_us,
                      const Visit& visit) {
  for (const int x : layout.routes_into(g)) {
    for_each_at(layout, c, x, instant_us, layout.fills_us(x), layout.route(x).landing * layout.grid().tau_us,
                visit);
  }
}

std::vector<int> routes_from(const MulticastLayout& layout, GpuId g) {
  std::vector<int> routes;
  for (int x = 0; x < static_cast<int>(layout.routes().size()); ++x) {
    if (layout.route(x).parent < 0 && layout.source(x) == g) routes.push_back(x);
  }
  return routes;
}

int epoch_of(const MulticastLayout& layout, double instant_us) {
  return static_cast<int>(std::floor((instant_us + layout.slack_us()) / layout.grid().tau_us));
}

template <class Visit>
void for_each_drop(const MulticastLayout& layout, const Visit& visit) {
  for (std::size_t g = 0; layout.has_drops() && g < layout.topology().num_gpus(); ++g) {
    const std::vector<int> onward = routes_from(layout, GpuId{g});
    for (std::size_t c = 0; c < layout.demand().num_chunks(); ++c) {
      if (layout.drops(ChunkId{c}, GpuId{g})) visit(ChunkId{c}, GpuId{g}, onward);
    }
  }
}

/// Whole chunks that a GPU has memory for.
double memory_in_chunks(const MulticastLayout& layout, GpuId g) {
  const Topology& topology = layout.topology();
  return std::floor(topology.node(topology.node_of(g)).relay_bytes / layout.grid().chunk_bytes * (1 + 1e-9));
}

class ChunkMemory {
 public:
  ChunkMemory(const MulticastLayout& layout, ChunkId c, GpuId g, const std::vector<int>& onward,
              std::vector<double>& x)
      : layout_(layout), c_(c), g_(g), onward_(onward), window_(layout.held_window(c, g)), x_(x) {}

  void set() {
    bool is_kept = false;
    for (int k = window_.first; k <= window_.last; ++k) {
      const double arrived = arriving(k);
      if (k > window_.first) {
        const double before = x_[index(layout_.held_column(c_, g_, k - 1))];
        is_kept = before > 0.5 && is_used_from(k);
        x_[index(layout_.dropped_column(c_, g_, k))] = is_kept ? 0 : before;
      }
      x_[index(layout_.held_column(c_, g_, k))] = arrived + (is_kept ? 1 : 0);
    }
    const std::vector<double>& instants = layout_.instants_us(g_);
    for (std::size_t i = 0; i < instants.size(); ++i)
      x_[index(layout_.there_column(c_, g_, i))] = there(instants[i]);
  }

 private:
  double start(int x, int k) const {
    return layout_.start_window(c_, x).contains(k) ? x_[index(layout_.start_column(c_, x, k))] : 0;
  }
  double arriving(int k) const {
    double sum = 0;
    for (const int x : layout_.routes_into(g_)) sum += start(x, k - layout_.route(x).landing);
    return sum;
  }
  /// Before the chunk comes again.
  bool is_used_from(int k) const {
    for (; k <= window_.last && arriving(k) == 0; ++k) {
      if (std::ranges::any_of(onward_, [&](int x) { return start(x, k) > 0; })) return true;
    }
    return false;
  }
  double there(double instant_us) const {
    double sum = 0;
    const auto add = [&](int column) { sum += x_[index(column)]; };
    for_each_filling(layout_, c_, g_, instant_us, add);
    if (const int k = epoch_of(layout_, instant_us); window_.contains(k) && window_.contains(k + 1))
      sum += x_[index(layout_.held_column(c_, g_, k))] - x_[index(layout_.dropped_column(c_, g_, k + 1))];
    double most = sum;
    for (const int x : onward_) {
      sum = 0;
      for_each_at(layout_, c_, x, instant_us, 0, layout_.route(x).duration_us, add);
      most = std::max(most, sum);
    }
    return most;
  }

  const MulticastLayout& layout_;
  ChunkId c_;
  GpuId g_;
  const std::vector<int>& onward_;
  EpochWindow window_;
  std::vector<double>& x_;
};

}  // namespace

void add_memory_columns(const MulticastLayout& layout, LinearModel& model) {
  const std::size_t gpus = layout.topology().num_gpus();
  for (std::size_t i = 0; layout.has_drops() && i < layout.demand().num_chunks() * gpus; ++i) {
    const ChunkId c{i / gpus};
    const GpuId g{i % gpus};
    if (!layout.drops(c, g)) continue;
    for (int k = 1; k < layout.held_window(c, g).size(); ++k) model.add_column(0, 1, 0);
    for (std::size_t k = 0; k < layout.instants_us(g).size(); ++k) model.add_column(0, 1, 0);
  }
}

void add_memory_rows(const MulticastLayout& layout, LinearModel& model) {
  for_each_drop(layout, [&](ChunkId c, GpuId g, const std::vector<int>& onward) {
    const EpochWindow held = layout.held_window(c, g);
    for (std::size_t i = 0; i < layout.instants_us(g).size(); ++i) {
      const double instant_us = layout.instants_us(g)[i];
      const int there = layout.there_column(c, g, i);
      const auto add_row = [&](const auto& add_entries) {
        const int row = model.add_row(0, kInfinity);
        model.add_entry(row, there, 1);
        add_entries(row);
      };
      add_row([&](int row) {
        for_each_filling(layout, c, g, instant_us, [&](int column) { model.add_entry(row, column, -1); });
        const int k = epoch_of(layout, instant_us);
        if (!held.contains(k) || !held.contains(k + 1)) return;
        model.add_entry(row, layout.held_column(c, g, k), -1);
        model.add_entry(row, layout.dropped_column(c, g, k + 1), 1);
      });
      for (const int x : onward) {
        add_row([&](int row) {
          for_each_at(layout, c, x, instant_us, 0, layout.route(x).duration_us,
                      [&](int column) { model.add_entry(row, column, -1); });
        });
      }
    }
  });
  for (std::size_t n = 0; layout.has_drops() && n < layout.topology().num_gpus(); ++n) {
    const GpuId g{n};
    for (std::size_t i = 0; i < layout.instants_us(g).size(); ++i) {
      const int row = model.add_row(-kInfinity, memory_in_chunks(layout, g));
      for (std::size_t c = 0; c < layout.demand().num_chunks(); ++c) {
        if (layout.drops(ChunkId{c}, g)) model.add_entry(row, layout.there_column(ChunkId{c}, g, i), 1);
      }
    }
  }
}

void set_memory(const MulticastLayout& layout, std::vector<double>& x) {
  for_each_drop(layout, [&](ChunkId c, GpuId g, const std::vector<int>& onward) {
    ChunkMemory(layout, c, g, onward, x).set();
  });
}

}  // namespace rondo
