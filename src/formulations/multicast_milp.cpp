#include <algorithm>
#include <cmath>
#include <memory>
#include <set>

#include "multicast_coding.hpp"
#include "multicast_layout.hpp"
#include "multicast_memory.hpp"
#include "rondo/formulations/formulations.hpp"

/// Rows, for chunk c, routes x (transfer_routes.hpp), GPUs g and epochs k:
///
// clang-format off
///   held(c, g, k) = held(c, g, k - 1) + sum over routes x into g of start(c, x, k - landing(x)) <= 1
///       a GPU receives a chunk at most once: a second arrival serves nothing
///   sum over k' <= k of start(c, x, k') <= held(c, source(x), k)          for routes x that end at a GPU
///       a GPU sends only chunks that it holds, to the same GPU at most once
///   start(c, next, k) <= start(c, x, k) <= sum over next of start(c, next, k)      at switches that may copy
///   start(c, x, k) = sum over next of start(c, next, k)                            at other switches
///   sum of the starts that occupy link l at instant t <= 1
///   sum of rate x the starts that occupy links of a group at instant t <= bandwidth of the group
///       for every instant t at which a chunk may start on the link, or on a link of the group
///   held and what GPUs of little memory only pass on: multicast_memory.hpp
///   held(c, d, K) = 1                                                     for destinations d
// clang-format on
///
/// Instants are real times, so that links behind a cut-through switch, where transfers begin between epochs,
/// are counted exactly. The chunks of a contribution are interchangeable: one of the destinations receives
/// them in order. There is no objective: the caller finds the least number of epochs K by trying fewer. Or,
/// of instances that reward early delivery, TE-CCL's (section 3.1), which is much harder and does not find
/// the least K:
///
// clang-format off
///   maximise sum over destinations d of chunks c and epochs k of held(c, d, k) / k
// clang-format on
namespace rondo {
namespace {

class MilpBuilder {
 public:
  explicit MilpBuilder(const MulticastLayout& layout) : layout_(layout) {}

  LinearModel build() {
    add_columns();
    for_each_chunk([&](ChunkId c) {
      add_arrivals(c);
      add_sends(c);
      add_switches(c);
    });
    add_links();
    add_groups();
    add_chunk_order();
    add_memory_rows(layout_, model_);
    return std::move(model_);
  }

 private:
  template <class Visit>
  void for_each_chunk(Visit visit) const {
    for (std::size_t c = 0; c < layout_.demand().num_chunks(); ++c) visit(ChunkId{c});
  }
  int num_routes() const { return static_cast<int>(layout_.routes().size()); }
  int horizon() const { return layout_.grid().num_epochs; }

  void add_start(int row, ChunkId c, int x, int k, double value) {
    if (layout_.start_window(c, x).contains(k)) model_.add_entry(row, layout_.start_column(c, x, k), value);
  }

  /// Columns in the order in which the layout numbers them.
  void add_columns() {
    for_each_chunk([&](ChunkId c) {
      for (int x = 0; x < num_routes(); ++x) {
        for (int k = 0; k < layout_.start_window(c, x).size(); ++k) model_.add_column(0, 1, 0, true);
      }
      const auto destinations = layout_.demand().destinations(c);
      for (std::size_t i = 0; i < layout_.topology().num_gpus(); ++i) {
        const GpuId g{i};
        if (g == layout_.demand().origin(c)) continue;
        const bool wanted = std::binary_search(destinations.begin(), destinations.end(), g);
        const EpochWindow window = layout_.held_window(c, g);
        for (int k = window.first; k <= window.last; ++k) {
          const double cost = wanted && layout_.rewards_early() ? -1.0 / k : 0;
          model_.add_column(wanted && k == horizon() ? 1 : 0, 1, cost);
        }
        // The chunk cannot reach this destination in so few epochs: it has no column here.
        if (wanted && window.size() == 0) model_.add_row(1, 1);
      }
    });
    add_memory_columns(layout_, model_);
  }

  void add_arrivals(ChunkId c) {
    for (std::size_t i = 0; i < layout_.topology().num_gpus(); ++i) {
      const GpuId g{i};
      if (g == layout_.demand().origin(c)) continue;
      const EpochWindow window = layout_.held_window(c, g);
      for (int k = window.first; k <= window.last; ++k) {
        const int row = model_.add_row(0, 0);
        model_.add_entry(row, layout_.held_column(c, g, k), 1);
        if (k > window.first) model_.add_entry(row, layout_.held_column(c, g, k - 1), -1);
        if (k > window.first && layout_.drops(c, g))
          model_.add_entry(row, layout_.dropped_column(c, g, k), 1);
        for (const int x : layout_.routes_into(g)) add_start(row, c, x, k - layout_.route(x).landing, -1);
      }
    }
  }

  void add_sends(ChunkId c) {
    for (int x = 0; x < num_routes(); ++x) {
      if (!layout_.route(x).ends_at_gpu()) continue;
      const EpochWindow window = layout_.start_window(c, x);
      const bool at_origin = layout_.source(x) == layout_.demand().origin(c);
      if (layout_.drops(c, layout_.source(x)) || layout_.drops(c, layout_.target(x))) {
        // What was dropped may come, and be sent on, again.
        for (int k = window.first; k <= window.last && !at_origin; ++k) {
          const int row = model_.add_row(-kInfinity, 0);
          model_.add_entry(row, layout_.start_column(c, x, k), 1);
          model_.add_entry(row, layout_.held_column(c, layout_.source(x), k), -1);
        }
        continue;
      }
      for (int k = at_origin ? window.last : window.first; k <= window.last; ++k) {
        const int row = model_.add_row(-kInfinity, at_origin ? 1 : 0);
        for (int earlier = window.first; earlier <= k; ++earlier) add_start(row, c, x, earlier, 1);
        if (!at_origin) model_.add_entry(row, layout_.held_column(c, layout_.source(x), k), -1);
      }
    }
  }

  void add_switches(ChunkId c) {
    for (int x = 0; x < num_routes(); ++x) {
      const TransferRoute& route = layout_.route(x);
      if (route.ends_at_gpu()) continue;
      const bool copies = layout_.topology().node(layout_.topology().link(route.link).dst).multicast;
      const EpochWindow window = layout_.start_window(c, x);
      for (int k = window.first; k <= window.last; ++k) {
        const int leaves = model_.add_row(0, copies ? kInfinity : 0);
        add_start(leaves, c, x, k, -1);
        for (const int next : route.onward) {
          add_start(leaves, c, next, k, 1);
          if (!copies) continue;
          if (!layout_.start_window(c, next).contains(k)) continue;
          const int enters = model_.add_row(-kInfinity, 0);
          add_start(enters, c, next, k, 1);
          add_start(enters, c, x, k, -1);
        }
      }
    }
    for (int x = 0; x < num_routes(); ++x) add_rate(c, x);
  }

  /// A section that begins on a link faster than its rate must include one of the links that limit the rate.
  void add_rate(ChunkId c, int x) {
    const TransferRoute& route = layout_.route(x);
    if (route.section != x || layout_.topology().link(route.link).bandwidth_GBps == route.rate_GBps) return;
    const EpochWindow window = layout_.start_window(c, x);
    for (int k = window.first; k <= window.last; ++k) {
      const int row = model_.add_row(0, kInfinity);
      add_start(row, c, x, k, -1);
      for (int y = x + 1; y < num_routes(); ++y) {
        const TransferRoute& other = layout_.route(y);
        if (other.section == x && layout_.topology().link(other.link).bandwidth_GBps == other.rate_GBps) {
          add_start(row, c, y, k, 1);
        }
      }
    }
  }

  /// One row for each instant at which a transfer may start on one of the links of `routes`: the sum of
  /// weight * start over the transfers that occupy these links at that instant is at most `limit`.
  template <class Weight>
  void add_capacity(const std::vector<int>& routes, double limit, Weight weight) {
    const double tau_us = layout_.grid().tau_us;
    const double slack_us = 1e-9 * tau_us * std::max(1, horizon());
    std::vector<double> offsets;  // distinct
    for (const int x : routes) {
      const double offset = layout_.route(x).offset_us;
      if (std::none_of(offsets.begin(), offsets.end(),
                       [&](double o) { return std::abs(o - offset) <= slack_us; })) {
        offsets.push_back(offset);
      }
    }
    for (const double offset : offsets) {
      for (int epoch = 0; epoch < horizon(); ++epoch) {
        const double instant_us = epoch * tau_us + offset;
        std::vector<std::pair<int, double>> entries;
        double most = 0;
        for (const int x : routes) {
          const TransferRoute& route = layout_.route(x);
          // It occupies the link at the instant: start + offset <= instant < start + offset + duration.
          const int last = static_cast<int>(std::floor((instant_us - route.offset_us + slack_us) / tau_us));
          for (int k = last;
               k >= 0 && k * tau_us + route.offset_us + route.duration_us > instant_us + slack_us; --k) {
            for_each_chunk([&](ChunkId c) {
              if (!layout_.start_window(c, x).contains(k)) return;
              entries.emplace_back(layout_.start_column(c, x, k), weight(route));
              most += weight(route);
            });
          }
        }
        if (most <= limit * (1 + 1e-12)) continue;
        const int row = model_.add_row(-kInfinity, limit);
        for (const auto& [column, value] : entries) model_.add_entry(row, column, value);
      }
    }
  }

  void add_links() {
    std::vector<std::vector<int>> on_link(layout_.topology().num_links());
    for (int x = 0; x < num_routes(); ++x) on_link[layout_.route(x).link.index()].push_back(x);
    for (const auto& routes : on_link) {
      add_capacity(routes, 1, [&](const TransferRoute& route) {
        return route.rate_GBps / layout_.topology().link(route.link).bandwidth_GBps;
      });
    }
  }

  void add_groups() {
    for (const SharedBandwidth& group : layout_.topology().shared_bandwidth()) {
      const std::set<LinkId> links(group.links.begin(), group.links.end());
      std::vector<int> routes;
      for (int x = 0; x < num_routes(); ++x) {
        if (links.contains(layout_.route(x).link)) routes.push_back(x);
      }
      add_capacity(routes, group.bandwidth_GBps, [](const TransferRoute& route) { return route.rate_GBps; });
    }
  }

  void add_chunk_order() {
    const int chunks = layout_.demand().chunks_per_contribution();
    for_each_chunk([&](ChunkId c) {
      if (c.value % chunks == 0) return;
      const ChunkId before{c.value - 1};
      const GpuId d = layout_.demand().destinations(c).front();
      const EpochWindow window = layout_.held_window(c, d);
      if (window.size() == 0) return;
      const int row = model_.add_row(0, kInfinity);
      for (int k = window.first; k <= window.last; ++k) {
        model_.add_entry(row, layout_.held_column(before, d, k), 1);
        model_.add_entry(row, layout_.held_column(c, d, k), -1);
      }
    });
  }

  const MulticastLayout& layout_;
  LinearModel model_;
};

}  // namespace

BuiltModel multicast_milp(const Instance& instance) {
  const auto layout = std::make_shared<const MulticastLayout>(instance);
  const auto model = std::make_shared<const LinearModel>(MilpBuilder(*layout).build());
  BuiltModel built;
  built.model = *model;
  built.decode = [layout](const Solution& solution) { return decode_multicast(*layout, solution); };
  built.encode = [layout, model](const Schedule& schedule) {
    return encode_multicast(*layout, *model, schedule);
  };
  return built;
}

}  // namespace rondo
