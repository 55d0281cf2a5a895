#include <algorithm>
#include <limits>
#include <map>
#include <queue>
#include <utility>

#include "kinds.hpp"
#include "timed_prices.hpp"

/// Prices over time: FORMATS.md 3 has the arithmetic and why it holds.
namespace rondo::certificates {
namespace {

constexpr Exact kNotInTime = std::numeric_limits<Exact>::infinity();

class PricesCheck {
 public:
  PricesCheck(const Topology& topology, const PricesCertificate& prices)
      : topology_(topology), prices_(topology, prices) {
    find_places();
  }

  double bound(Exact payments) const { return prices_.bound(payments, kSumTolerance); }

  /// What all bytes pay at least that are in time.
  Exact payments(const Demand& demand) const {
    std::map<std::pair<GpuId, std::size_t>, std::vector<Exact>> sent;  // from where and when; bytes a GPU
    for (const Contribution& part : demand.contributions()) {
      auto& bytes = sent[{part.origin, prices_.period_at(part.ready_us)}];
      bytes.resize(topology_.num_gpus(), 0);
      bytes[part.destinations.front().index()] += part.bytes;
    }
    Exact sum = 0;
    for (const auto& [from, bytes] : sent) {
      const std::vector<Exact> least = least_payments(topology_.node_of(from.first), from.second);
      for (std::size_t g = 0; g < bytes.size(); ++g) {
        if (bytes[g] > 0) sum += bytes[g] * least[topology_.node_of(GpuId(g)).index()];
      }
    }
    return sum;
  }

 private:
  /// A place where bytes are: a node, or one that has passed the message cost of what begins at its node.
  struct Way {
    std::size_t link;
    std::size_t to;  ///< a node
  };
  struct Delay {
    std::size_t to;  ///< a place behind the message cost
    double us;
  };

  void find_places() {
    std::size_t count = topology_.num_nodes();
    ways_.resize(count);
    delays_.resize(count);
    std::map<std::pair<std::size_t, double>, std::size_t> behind;
    for (std::size_t l = 0; l < topology_.num_links(); ++l) {
      const Link& link = topology_.links()[l];
      const double message_us = topology_.message_us_at_start(link);
      std::size_t place = link.src.index();
      if (message_us > 0) {
        const auto [known, is_new] = behind.try_emplace({place, message_us}, count);
        if (is_new) {
          delays_[place].push_back({count++, message_us});
          ways_.emplace_back();
          delays_.emplace_back();
        }
        place = known->second;
      }
      ways_[place].push_back({l, link.dst.index()});
    }
  }

  /// Per node, what a byte pays at least to be there before the end that is at `source` from `first` on.
  std::vector<Exact> least_payments(NodeId source, std::size_t first) const {
    const std::size_t places = ways_.size();
    std::vector<Exact> least(places * prices_.num_periods(), kNotInTime);
    least[first * places + source.index()] = 0;
    for (std::size_t period = first; period < prices_.num_periods(); ++period) {
      spread(period, &least[period * places], least);
      if (period + 1 == prices_.num_periods()) break;
      for (std::size_t at = period * places; at < (period + 1) * places; ++at)
        least[at + places] = std::min(least[at + places], least[at]);
    }
    return {least.end() - static_cast<std::ptrdiff_t>(places), least.end()};
  }

  /// Onwards from what is known of `period`, whose labels are `now`; Dijkstra's search within the period.
  void spread(std::size_t period, const Exact* now, std::vector<Exact>& least) const {
    using Entry = std::pair<Exact, std::size_t>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
    for (std::size_t place = 0; place < ways_.size(); ++place) {
      if (now[place] < kNotInTime) open.emplace(now[place], place);
    }
    const auto reach = [&](std::size_t place, double later_us, Exact payment) {
      const std::size_t arrival = prices_.period_later(period, later_us);
      if (arrival == prices_.num_periods()) return;
      Exact& known = least[arrival * ways_.size() + place];
      if (!(payment < known)) return;
      known = payment;
      if (arrival == period) open.emplace(payment, place);
    };
    while (!open.empty()) {
      const auto [payment, place] = open.top();
      open.pop();
      if (payment > now[place]) continue;
      for (const Delay& delay : delays_[place]) reach(delay.to, delay.us, payment);
      for (const Way& way : ways_[place]) {
        reach(way.to, topology_.links()[way.link].latency_us, payment + prices_.of(period, LinkId(way.link)));
      }
    }
  }

  const Topology& topology_;
  TimedPrices prices_;
  std::vector<std::vector<Way>> ways_ = {};
  std::vector<std::vector<Delay>> delays_ = {};
};

}  // namespace

double bound(const Topology& topology, const Demand& demand, const PricesCertificate& prices) {
  if (!demand.is_unicast())
    refuse_certificate("prices over time are for data with one source and one destination each");
  const PricesCheck check(topology, prices);
  return check.bound(check.payments(demand));
}

}  // namespace rondo::certificates
