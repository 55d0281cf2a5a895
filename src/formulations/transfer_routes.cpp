#include "transfer_routes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "rondo/core/error.hpp"
#include "rondo/core/units.hpp"

namespace rondo {
namespace {

class TransferRouteBuilder {
 public:
  TransferRouteBuilder(const Topology& topology, const EpochGrid& grid, std::size_t max_routes)
      : topology_(topology), grid_(grid), max_routes_(max_routes), on_path_(topology.num_nodes(), 0) {}

  std::vector<TransferRoute> build() {
    for (std::size_t g = 0; g < topology_.num_gpus(); ++g) {
      const NodeId source = topology_.node_of(GpuId{g});
      on_path_[source.index()] = 1;
      for (const LinkId l : topology_.out_links(source)) begin_section(l, -1, 0);
      on_path_[source.index()] = 0;
    }
    return std::move(routes_);
  }

 private:
  bool cut_through(NodeId n) const {
    return !topology_.is_gpu(n) && topology_.node(n).forwarding == Forwarding::cut_through;
  }

  /// The message cost of every section that begins with the link.
  double message_us(LinkId link) const {
    const double own = topology_.link(link).message_us;
    const NodeId head = topology_.link(link).dst;
    if (!cut_through(head)) return own;
    for (const LinkId next : topology_.out_links(head)) {
      const double onward = topology_.link(next).message_us;
      if (onward == own) continue;
      throw Error(ExitCode::unavailable,
                  fmt::format("engine milp: links {} and {} of '{}', which a cut-through switch joins, have "
                              "message_us {} and {}, and the model knows one for both; use engine list",
                              link.value, next.value, topology_.name(), own, onward));
    }
    return own;
  }

  /// A section runs at the least bandwidth of the links that take part: one set of routes for each possible
  /// rate.
  bool begin_section(LinkId link, int parent, double offset_us) {
    std::set<double, std::greater<>> rates;
    collect_bandwidths(link, topology_.link(link).bandwidth_GBps, rates);
    bool any = false;
    for (const double rate : rates) {
      const std::size_t begin = routes_.size();
      const bool reaches = add_route(link, parent, -1, rate, offset_us);
      const bool attains = std::any_of(routes_.begin() + static_cast<std::ptrdiff_t>(begin), routes_.end(),
                                       [&](const TransferRoute& route) {
                                         return route.section == static_cast<int>(begin) &&
                                                topology_.link(route.link).bandwidth_GBps == rate;
                                       });
      if (reaches && attains) {
        any = true;
      } else {
        remove_from(begin, parent);
      }
    }
    return any;
  }

  void collect_bandwidths(LinkId link, double at_most, std::set<double, std::greater<>>& rates) {
    const NodeId head = topology_.link(link).dst;
    if (on_path_[head.index()] != 0) return;
    if (topology_.link(link).bandwidth_GBps <= at_most) rates.insert(topology_.link(link).bandwidth_GBps);
    if (!cut_through(head)) return;
    on_path_[head.index()] = 1;
    for (const LinkId next : topology_.out_links(head)) collect_bandwidths(next, at_most, rates);
    on_path_[head.index()] = 0;
  }

  /// Adds the route and its continuations, unless they reach no GPU. Returns whether they reach one.
  bool add_route(LinkId link, int parent, int section, double rate, double offset_us) {
    const Link& data = topology_.link(link);
    const NodeId head = data.dst;
    if (on_path_[head.index()] != 0 || data.bandwidth_GBps < rate) return false;
    if (routes_.size() >= max_routes_) {
      throw Error(
          ExitCode::unavailable,
          fmt::format(
              "more than {} paths through the switches of '{}' are too many for the multicast MILP; use "
              "engine list or a smaller fabric",
              max_routes_, topology_.name()));
    }
    const int self = static_cast<int>(routes_.size());
    const double duration_us = message_us(link) + transmission_us(grid_.chunk_bytes, rate);
    TransferRoute route{parent, section < 0 ? self : section, link, rate, offset_us, duration_us};
    const bool is_gpu = topology_.is_gpu(head);
    if (is_gpu) route.landing = epochs_covering(offset_us + duration_us + data.latency_us, grid_.tau_us);
    routes_.push_back(std::move(route));
    bool reaches = is_gpu;
    if (!is_gpu) {
      on_path_[head.index()] = 1;
      for (const LinkId next : topology_.out_links(head)) {
        reaches =
            (cut_through(head) ? add_route(next, self, routes_[static_cast<std::size_t>(self)].section, rate,
                                           offset_us + data.latency_us)
                               : begin_section(next, self, offset_us + duration_us + data.latency_us)) ||
            reaches;
      }
      on_path_[head.index()] = 0;
    }
    if (!reaches) {
      remove_from(static_cast<std::size_t>(self), -1);
      return false;
    }
    if (parent >= 0) routes_[static_cast<std::size_t>(parent)].onward.push_back(self);
    return true;
  }

  void remove_from(std::size_t begin, int parent) {
    routes_.resize(begin);
    if (parent >= 0) {
      std::erase_if(routes_[static_cast<std::size_t>(parent)].onward,
                    [&](int child) { return child >= static_cast<int>(begin); });
    }
  }

  const Topology& topology_;
  const EpochGrid& grid_;
  std::size_t max_routes_;
  std::vector<char> on_path_;
  std::vector<TransferRoute> routes_;
};

}  // namespace

std::vector<TransferRoute> transfer_routes(const Topology& topology, const EpochGrid& grid,
                                           std::size_t max_routes) {
  return TransferRouteBuilder(topology, grid, max_routes).build();
}

}  // namespace rondo
