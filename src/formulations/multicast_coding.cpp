#include "multicast_coding.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "multicast_memory.hpp"

namespace rondo {
namespace {

class Decoder {
 public:
  Decoder(const MulticastLayout& layout, const std::vector<double>& x) : layout_(layout), x_(x) {}

  FlowField decode() {
    const auto num_routes = static_cast<int>(layout_.routes().size());
    for (std::size_t i = 0; i < layout_.demand().num_chunks(); ++i) {
      for (int x = 0; x < num_routes; ++x) {
        if (layout_.route(x).parent >= 0) continue;
        const EpochWindow window = layout_.start_window(ChunkId{i}, x);
        for (int k = window.first; k <= window.last; ++k) visit(ChunkId{i}, x, k);
      }
    }
    return std::move(field_);
  }

 private:
  void visit(ChunkId c, int x, int k) {
    if (!layout_.start_window(c, x).contains(k)) return;
    const double amount = x_[static_cast<std::size_t>(layout_.start_column(c, x, k))];
    if (amount < kFeasibilityTolerance) return;
    const TransferRoute& route = layout_.route(x);
    field_.entries.push_back({c.value, route.link, k, amount});
    if (route.ends_at_gpu()) {
      field_.finish_us = std::max(field_.finish_us, (k + route.landing) * layout_.grid().tau_us);
    }
    for (const int next : route.onward) visit(c, next, k);
  }

  const MulticastLayout& layout_;
  const std::vector<double>& x_;
  FlowField field_;
};

class Encoder {
 public:
  Encoder(const MulticastLayout& layout, const Schedule& schedule)
      : layout_(layout),
        by_chunk_(layout.demand().num_chunks()),
        x_(static_cast<std::size_t>(layout.num_columns())) {
    for (const Send& send : schedule.sends) by_chunk_[send.chunk.index()].push_back(send);
    put_chunks_in_order();
  }

  std::vector<double> encode() {
    const auto num_routes = static_cast<int>(layout_.routes().size());
    for (std::size_t i = 0; i < by_chunk_.size(); ++i) {
      for (const Send& send : by_chunk_[i]) {
        const int k = static_cast<int>(std::lround(send.start_us / layout_.grid().tau_us));
        for (int x = 0; x < num_routes; ++x) {
          if (layout_.route(x).parent < 0 && layout_.route(x).link == send.link &&
              set_transfer(ChunkId{i}, x, k))
            break;
        }
      }
      set_held(ChunkId{i});
    }
    set_memory(layout_, x_);
    return std::move(x_);
  }

 private:
  /// When the chunk reaches the GPU that orders the chunks of its contribution.
  double arrival_us(std::size_t chunk) const {
    const NodeId first = layout_.topology().node_of(layout_.demand().destinations(ChunkId{chunk}).front());
    double us = kInfinity;
    for (const Send& send : by_chunk_[chunk]) {
      if (layout_.topology().link(send.link).dst == first) us = std::min(us, send.arrival_us);
    }
    return us;
  }

  void put_chunks_in_order() {
    const auto chunks = static_cast<std::ptrdiff_t>(layout_.demand().chunks_per_contribution());
    std::vector<std::size_t> order(by_chunk_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (auto begin = order.begin(); begin != order.end(); begin += chunks) {
      std::stable_sort(begin, begin + chunks,
                       [this](std::size_t a, std::size_t b) { return arrival_us(a) < arrival_us(b); });
    }
    std::vector<std::vector<Send>> ordered;
    for (const std::size_t chunk : order) ordered.push_back(std::move(by_chunk_[chunk]));
    by_chunk_ = std::move(ordered);
  }

  /// Sets the starts of the transfer if the schedule has all sends that the section of this route needs.
  bool set_transfer(ChunkId c, int x, int k) {
    std::vector<int> taken;
    if (!collect(c, x, k, 0, taken)) return false;
    for (const int y : taken) {
      if (layout_.start_window(c, y).contains(k))
        x_[static_cast<std::size_t>(layout_.start_column(c, y, k))] = 1;
    }
    return true;
  }

  /// The routes of the schedule from x on. They must include, for each section, a link as slow as the
  /// section. The topology of whole epochs rounds the latency of a link by less than an epoch, hence
  /// `links_before`.
  bool collect(ChunkId c, int x, int k, int links_before, std::vector<int>& taken) const {
    const TransferRoute& route = layout_.route(x);
    const double tau_us = layout_.grid().tau_us;
    const double expected_us = k * tau_us + route.offset_us;
    const double tolerance_us = (links_before + 0.01) * tau_us;
    const auto& sends = by_chunk_[c.index()];
    if (std::none_of(sends.begin(), sends.end(), [&](const Send& send) {
          return send.link == route.link && std::abs(send.start_us - expected_us) <= tolerance_us;
        })) {
      return false;
    }
    const std::size_t begin = taken.size();
    taken.push_back(x);
    bool complete = route.ends_at_gpu();
    for (const int next : route.onward) complete = collect(c, next, k, links_before + 1, taken) || complete;
    if (complete && route.section == x) {
      complete = std::any_of(taken.begin() + static_cast<std::ptrdiff_t>(begin), taken.end(), [&](int y) {
        return layout_.route(y).section == x &&
               layout_.topology().link(layout_.route(y).link).bandwidth_GBps == route.rate_GBps;
      });
    }
    if (!complete) taken.resize(begin);
    return complete;
  }

  void set_held(ChunkId c) {
    for (std::size_t i = 0; i < layout_.topology().num_gpus(); ++i) {
      const GpuId g{i};
      if (g == layout_.demand().origin(c)) continue;
      const EpochWindow window = layout_.held_window(c, g);
      double held = 0;
      for (int k = window.first; k <= window.last; ++k) {
        for (const int x : layout_.routes_into(g)) {
          const int start = k - layout_.route(x).landing;
          if (layout_.start_window(c, x).contains(start)) {
            held += x_[static_cast<std::size_t>(layout_.start_column(c, x, start))];
          }
        }
        x_[static_cast<std::size_t>(layout_.held_column(c, g, k))] = held;
      }
    }
  }

  const MulticastLayout& layout_;
  std::vector<std::vector<Send>> by_chunk_;
  std::vector<double> x_;
};

}  // namespace

FlowField decode_multicast(const MulticastLayout& layout, const Solution& solution) {
  return Decoder(layout, solution.x).decode();
}

std::optional<std::vector<double>> encode_multicast(const MulticastLayout& layout, const LinearModel& model,
                                                    const Schedule& schedule) {
  std::vector<double> x = Encoder(layout, schedule).encode();
  if (max_violation(model, x) > kFeasibilityTolerance) return std::nullopt;
  return x;
}

}  // namespace rondo
