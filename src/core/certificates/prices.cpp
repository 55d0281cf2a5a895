#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <queue>
#include <utility>

#include "kinds.hpp"
#include "rondo/core/units.hpp"

/// Prices over time: FORMATS.md 3 has the arithmetic and why it holds.
namespace rondo::certificates {
namespace {

/// Times and sums of the check: 64 bits of mantissa.
using Exact = long double;

constexpr Exact kNotInTime = std::numeric_limits<Exact>::infinity();
/// Relative: what links may earn beyond what bytes pay, for sums that were rounded.
constexpr Exact kEarningsTolerance = 1e-12L;
/// Of labels that the search over periods keeps for one source.
constexpr std::size_t kMostLabels = 50'000'000;

/// The greatest double that is not above the sum (Knuth's error of a sum, The Art of Computer Programming 2,
/// section 4.2.2, theorem C), so that comparisons of it with doubles are exact.
double sum_rounded_down(double a, double b) {
  const double sum = a + b;
  const double of_b = sum - a;
  const double error = (a - (sum - of_b)) + (b - of_b);
  return error < 0 ? std::nextafter(sum, -std::numeric_limits<double>::infinity()) : sum;
}

class PricesCheck {
 public:
  PricesCheck(const Topology& topology, const PricesCertificate& prices)
      : topology_(topology),
        prices_(prices),
        num_rows_(topology.num_links() + topology.shared_bandwidth().size()) {
    check_periods();
    read_prices();
    find_places();
  }

  /// What all links and groups earn that are never idle.
  Exact earnings() const {
    Exact sum = 0;
    for (std::size_t i = 0; i < prices_.place.size(); ++i) {
      const auto place = static_cast<std::size_t>(prices_.place[i]);
      const std::size_t row = place % num_rows_;
      const double GBps = row < topology_.num_links()
                              ? topology_.link(LinkId(row)).bandwidth_GBps
                              : topology_.shared_bandwidth()[row - topology_.num_links()].bandwidth_GBps;
      sum += Exact{prices_.price[i]} * GBps * length_us(place / num_rows_);
    }
    return sum * kBytesPerUsPerGBps;
  }

  /// What all bytes pay at least that are in time.
  Exact payments(const Demand& demand) const {
    std::map<std::pair<GpuId, std::size_t>, std::vector<Exact>> sent;  // from where and when; bytes a GPU
    for (const Contribution& part : demand.contributions()) {
      auto& bytes = sent[{part.origin, period_at(part.ready_us)}];
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

  std::size_t num_periods() const { return prices_.from_us.size(); }
  double end_us(std::size_t period) const {
    return period + 1 < num_periods() ? prices_.from_us[period + 1] : prices_.until_us;
  }
  Exact length_us(std::size_t period) const { return Exact{end_us(period)} - prices_.from_us[period]; }

  void check_periods() const {
    const auto& from_us = prices_.from_us;
    if (from_us.empty() || from_us.front() != 0 || !std::ranges::is_sorted(from_us, std::less_equal{}) ||
        !(prices_.until_us > from_us.back()) || !std::isfinite(prices_.until_us)) {
      refuse_certificate("periods begin at 0 and then at times that ascend, and until_us is after them");
    }
    for (const Link& link : topology_.links()) {
      if (!link.bandwidth_steps.empty())
        refuse_certificate("prices over time prove nothing where bandwidth changes");
    }
    if (num_periods() > kMostLabels / (topology_.num_links() + topology_.num_nodes()))
      refuse_certificate(fmt::format("there are {} periods of {} links; that is too much to check",
                                     num_periods(), topology_.num_links()));
  }

  void read_prices() {
    if (prices_.price.size() != prices_.place.size()) {
      refuse_certificate(
          fmt::format("there are {} prices for {} places", prices_.price.size(), prices_.place.size()));
    }
    std::int64_t before = -1;
    for (const std::int32_t place : prices_.place) {
      if (place <= before || static_cast<std::size_t>(place) >= num_periods() * num_rows_) {
        refuse_certificate(fmt::format("place {} of a price: places ascend from 0 to {}", place,
                                       num_periods() * num_rows_ - 1));
      }
      before = place;
    }
    const std::size_t links = topology_.num_links();
    price_.assign(num_periods() * links, 0);
    for (std::size_t i = 0; i < prices_.place.size(); ++i) {
      const double price = prices_.price[i];
      if (!(price >= 0) || !std::isfinite(price))
        refuse_certificate(fmt::format("a price is {}; prices are finite and not negative", price));
      const auto place = static_cast<std::size_t>(prices_.place[i]);
      Exact* const of_period = &price_[place / num_rows_ * links];
      const std::size_t row = place % num_rows_;
      if (row < links) {
        of_period[row] += price;
        continue;
      }
      for (const LinkId l : topology_.shared_bandwidth()[row - links].links) of_period[l.index()] += price;
    }
  }

  void find_places() {
    std::size_t count = topology_.num_nodes();
    ways_.resize(count);
    delays_.resize(count);
    std::map<std::pair<std::size_t, double>, std::size_t> behind;
    for (std::size_t l = 0; l < topology_.num_links(); ++l) {
      const Link& link = topology_.links()[l];
      const Node& node = topology_.node(link.src);
      const bool begins = node.kind == NodeKind::gpu || node.forwarding == Forwarding::store_and_forward;
      std::size_t place = link.src.index();
      if (begins && link.message_us > 0) {
        const auto [known, is_new] = behind.try_emplace({place, link.message_us}, count);
        if (is_new) {
          delays_[place].push_back({count++, link.message_us});
          ways_.emplace_back();
          delays_.emplace_back();
        }
        place = known->second;
      }
      ways_[place].push_back({l, link.dst.index()});
    }
  }

  /// The last period that begins at `us` or before.
  std::size_t period_at(double us) const {
    return static_cast<std::size_t>(std::ranges::upper_bound(prices_.from_us, us) - prices_.from_us.begin()) -
           1;
  }

  /// That in which something is at the earliest that is there in `period`, and `us` later; num_periods()
  /// where that is too late.
  std::size_t period_later(std::size_t period, double us) const {
    const double earliest = sum_rounded_down(prices_.from_us[period], us);
    return earliest >= prices_.until_us ? num_periods() : period_at(earliest);
  }

  /// Per node, what a byte pays at least to be there before the end that is at `source` from `first` on.
  std::vector<Exact> least_payments(NodeId source, std::size_t first) const {
    const std::size_t places = ways_.size();
    std::vector<Exact> least(places * num_periods(), kNotInTime);
    least[first * places + source.index()] = 0;
    for (std::size_t period = first; period < num_periods(); ++period) {
      spread(period, &least[period * places], least);
      if (period + 1 == num_periods()) break;
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
      const std::size_t arrival = period_later(period, later_us);
      if (arrival == num_periods()) return;
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
        reach(way.to, topology_.links()[way.link].latency_us,
              payment + price_[period * topology_.num_links() + way.link]);
      }
    }
  }

  const Topology& topology_;
  const PricesCertificate& prices_;
  std::size_t num_rows_;
  std::vector<Exact> price_ = {};  ///< per period and link, with that of its groups
  std::vector<std::vector<Way>> ways_ = {};
  std::vector<std::vector<Delay>> delays_ = {};
};

}  // namespace

double bound(const Topology& topology, const Demand& demand, const PricesCertificate& prices) {
  if (!demand.is_unicast())
    refuse_certificate("prices over time are for data with one source and one destination each");
  const PricesCheck check(topology, prices);
  const Exact payments = check.payments(demand);
  const Exact earnings = check.earnings();
  if (!(payments > 0) || !(earnings <= payments * (1 + kEarningsTolerance))) {
    refuse_certificate(
        fmt::format("links can earn {} and the bytes have to pay {}; prices over time prove a bound where "
                    "the bytes have to pay as much",
                    static_cast<double>(earnings), static_cast<double>(payments)));
  }
  return prices.until_us;
}

}  // namespace rondo::certificates
