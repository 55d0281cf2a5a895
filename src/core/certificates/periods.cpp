#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

#include "kinds.hpp"
#include "rondo/core/units.hpp"

/// The metric whose lengths differ between periods, for data with one source each.
namespace rondo::certificates {
namespace {

/// Relative: what shares of a length may sum to beyond it by rounding.
constexpr double kShareTolerance = 1e-12;
constexpr int kMostHalvings = 200;
/// Beyond it nothing ends that ends at all.
constexpr double kLatest_us = 1e30;

class PeriodMetric {
 public:
  PeriodMetric(const Topology& topology, const Demand& demand, const MetricCertificate& metric)
      : topology_(topology), demand_(demand), metric_(metric) {
    check_lengths();
    check_shares();
  }

  double bound() const {
    const double amount = total_distance();
    if (!(amount > 0) || !std::isfinite(amount)) {
      refuse_certificate(fmt::format(
          "the demand's bytes times distances sum to {}; a metric has to keep some data from where it is "
          "wanted, and all of it has to get there",
          amount));
    }
    return time_for(amount);
  }

 private:
  /// Of what a link may carry: from its first moment on, and until that long before the end.
  struct Window {
    double from_us;
    double before_end_us;
  };

  std::size_t num_periods() const { return metric_.from_us.size(); }

  void check_lengths() const {
    const auto& from_us = metric_.from_us;
    if (from_us.front() != 0 || !std::ranges::is_sorted(from_us, std::less_equal{}) ||
        !std::isfinite(from_us.back()))
      refuse_certificate("periods begin at 0 and then at finite times that ascend");
    if (metric_.length.size() != num_periods() * topology_.num_links()) {
      refuse_certificate(fmt::format("the metric has {} lengths; {} periods of {} links have {}",
                                     metric_.length.size(), num_periods(), topology_.num_links(),
                                     num_periods() * topology_.num_links()));
    }
    for (const double length : metric_.length) {
      if (!(length >= 0) || !std::isfinite(length)) {
        refuse_certificate(
            fmt::format("a link has the length {}; lengths are finite and not negative", length));
      }
    }
  }

  void check_shares() {
    for (const MetricDatum& datum : metric_.data) {
      if (!datum_at_.try_emplace({datum.source, datum.destinations}, shares_.size()).second)
        refuse_certificate(
            fmt::format("data of GPU {} for the same destinations stands twice", datum.source.value));
      shares_.emplace_back();
    }
    std::map<std::pair<std::int32_t, std::int32_t>, double> sums;
    for (const MetricShare& share : metric_.shares) {
      if (share.datum < 0 || static_cast<std::size_t>(share.datum) >= shares_.size() || share.place < 0 ||
          static_cast<std::size_t>(share.place) >= metric_.length.size())
        refuse_certificate(
            fmt::format("there is no share of length {} for datum {}", share.place, share.datum));
      if (!(share.length >= 0) || !std::isfinite(share.length))
        refuse_certificate(fmt::format("a share is {}; shares are finite and not negative", share.length));
      const auto place = static_cast<std::size_t>(share.place);
      auto& own = shares_[static_cast<std::size_t>(share.datum)][share.destination];
      if (!own.try_emplace(place, share.length).second)
        refuse_certificate(fmt::format("a share of length {} stands twice", place));
      sums[{share.datum, share.place}] += share.length;
    }
    for (const auto& [at, sum] : sums) {
      const double length = metric_.length[static_cast<std::size_t>(at.second)];
      if (sum <= length * (1 + kShareTolerance)) continue;
      refuse_certificate(fmt::format("shares of length {} sum to {}; it is {}", at.second, sum, length));
    }
  }

  /// Per node the least distance from `source` that can be waited for to the end, starting at `ready_us`.
  /// `length_at` gives the length of a place.
  template <class LengthAt>
  std::vector<double> distances(GpuId source, double ready_us, const LengthAt& length_at) const {
    using Entry = std::pair<double, std::size_t>;
    const std::size_t nodes = topology_.num_nodes();
    const auto first = static_cast<std::size_t>(std::ranges::upper_bound(metric_.from_us, ready_us) -
                                                metric_.from_us.begin() - 1);
    std::vector<double> distance(nodes * num_periods(), kUnreachable);
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
    const auto reach = [&](std::size_t node, double far) {
      if (!(far < distance[node])) return;
      distance[node] = far;
      open.emplace(far, node);
    };
    reach(first * nodes + topology_.node_of(source).index(), 0);
    while (!open.empty()) {
      const auto [far, at] = open.top();
      open.pop();
      if (far > distance[at]) continue;
      const std::size_t period = at / nodes;
      if (period + 1 < num_periods()) reach(at + nodes, far);
      for (const LinkId l : topology_.out_links(NodeId{at % nodes})) {
        reach(period * nodes + topology_.link(l).dst.index(),
              far + length_at(period * topology_.num_links() + l.index()));
      }
    }
    return {distance.end() - static_cast<std::ptrdiff_t>(nodes), distance.end()};
  }

  double distance_of(const Contribution& part) const {
    const auto node = [&](GpuId g) { return topology_.node_of(g).index(); };
    const auto known = datum_at_.find({part.origin, part.destinations});
    if (known == datum_at_.end()) {
      const auto distance =
          distances(part.origin, part.ready_us, [&](std::size_t place) { return metric_.length[place]; });
      double farthest = 0;
      for (const GpuId d : part.destinations) farthest = std::max(farthest, distance[node(d)]);
      return farthest;
    }
    double sum = 0;
    for (const auto& share_of_one : shares_[known->second]) {
      const auto& destination = share_of_one.first;
      const auto& own = share_of_one.second;
      if (!std::ranges::binary_search(part.destinations, destination))
        refuse_certificate(fmt::format("GPU {} has a share of what it does not want", destination.value));
      const auto distance = distances(part.origin, part.ready_us, [&](std::size_t place) {
        const auto share = own.find(place);
        return share == own.end() ? 0.0 : share->second;
      });
      sum += distance[node(destination)];
    }
    return sum;
  }

  double total_distance() const {
    std::map<std::tuple<GpuId, std::vector<GpuId>, double>, double> known;
    double sum = 0;
    for (const Contribution& part : demand_.contributions()) {
      const auto [at, is_new] = known.try_emplace({part.origin, part.destinations, part.ready_us}, 0.0);
      if (is_new) at->second = distance_of(part);
      sum += part.bytes * at->second;
    }
    return sum;
  }

  std::vector<Window> windows() const {
    std::map<GpuId, double> ready_us;
    std::set<NodeId> ends;
    for (const Contribution& part : demand_.contributions()) {
      const auto [known, is_new] = ready_us.try_emplace(part.origin, part.ready_us);
      known->second = std::min(known->second, part.ready_us);
      for (const GpuId d : part.destinations) ends.insert(topology_.node_of(d));
    }
    const std::vector<double> latency = latencies(topology_);
    std::vector<double> to_tail(topology_.num_nodes(), kUnreachable);
    for (const auto& [source, from_us] : ready_us) {
      const auto distance = distances_from_any(topology_.graph(), latency, {topology_.node_of(source)});
      for (std::size_t n = 0; n < to_tail.size(); ++n)
        to_tail[n] = std::min(to_tail[n], from_us + distance[n]);
    }
    const auto from_head =
        distances_from_any(reversed(topology_.graph()), latency, {ends.begin(), ends.end()});
    std::vector<Window> windows;
    for (const Link& link : topology_.links())
      windows.push_back({to_tail[link.src.index()], link.latency_us + from_head[link.dst.index()]});
    return windows;
  }

  /// What links carry by `end_us`, times lengths.
  double carried(const std::vector<Window>& windows, double end_us) const {
    double sum = 0;
    for (std::size_t p = 0; p < num_periods(); ++p) {
      const double until_us = p + 1 < num_periods() ? metric_.from_us[p + 1] : kUnreachable;
      for (std::size_t l = 0; l < windows.size(); ++l) {
        const double from_us = std::max(windows[l].from_us, metric_.from_us[p]);
        const double us = std::min(until_us, end_us - windows[l].before_end_us) - from_us;
        if (us > 0)
          sum += us * topology_.links()[l].bandwidth_GBps * kBytesPerUsPerGBps *
                 metric_.length[p * windows.size() + l];
      }
    }
    return sum;
  }

  double time_for(double amount) const {
    const std::vector<Window> all = windows();
    double late = 1;
    while (carried(all, late) < amount) {
      late *= 2;
      if (late > kLatest_us) refuse_certificate("links of these lengths never carry the demand");
    }
    double early = 0;
    for (int i = 0; i < kMostHalvings; ++i) {
      const double middle = std::midpoint(early, late);
      if (middle <= early || middle >= late) break;
      (carried(all, middle) < amount ? early : late) = middle;
    }
    return early;
  }

  const Topology& topology_;
  const Demand& demand_;
  const MetricCertificate& metric_;
  std::map<std::pair<GpuId, std::vector<GpuId>>, std::size_t> datum_at_;
  std::vector<std::map<GpuId, std::map<std::size_t, double>>> shares_;  ///< per datum
};

}  // namespace

double bound_with_periods(const Topology& topology, const Demand& demand, const MetricCertificate& metric) {
  if (demand.has_several_sources()) {
    refuse_certificate("a metric with periods is for data with one source each; here some has several");
  }
  if (topology.has_bandwidth_steps())
    refuse_certificate("a metric with periods proves nothing where bandwidth changes");
  return PeriodMetric(topology, demand, metric).bound();
}

}  // namespace rondo::certificates
