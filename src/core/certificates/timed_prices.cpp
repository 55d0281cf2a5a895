#include "timed_prices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "kinds.hpp"
#include "rondo/core/units.hpp"

namespace rondo::certificates {
namespace {

/// Of labels that a search over periods keeps for one source.
constexpr std::size_t kMostLabels = 50'000'000;

/// What a + b is more than `sum`, which is it rounded (Knuth, The Art of Computer Programming 2, section
/// 4.2.2, theorem C).
double error_of(double sum, double a, double b) {
  const double of_b = sum - a;
  return (a - (sum - of_b)) + (b - of_b);
}

}  // namespace

double sum_rounded_down(double a, double b) {
  const double sum = a + b;
  return error_of(sum, a, b) < 0 ? std::nextafter(sum, -std::numeric_limits<double>::infinity()) : sum;
}

double sum_rounded_up(double a, double b) {
  const double sum = a + b;
  return error_of(sum, a, b) > 0 ? std::nextafter(sum, std::numeric_limits<double>::infinity()) : sum;
}

TimedPrices::TimedPrices(const Topology& topology, const PricesCertificate& prices)
    : topology_(topology),
      prices_(prices),
      num_rows_(topology.num_links() + topology.shared_bandwidth().size()) {
  check_periods();
  read_prices();
}

Exact TimedPrices::earnings() const {
  Exact sum = 0;
  for (std::size_t i = 0; i < prices_.place.size(); ++i) {
    const auto place = static_cast<std::size_t>(prices_.place[i]);
    const std::size_t row = place % num_rows_;
    const double GBps = row < topology_.num_links()
                            ? topology_.link(LinkId(row)).bandwidth_GBps
                            : topology_.shared_bandwidth()[row - topology_.num_links()].bandwidth_GBps;
    sum += Exact{prices_.price[i]} * GBps * (Exact{end_us(place / num_rows_)} - from_us(place / num_rows_));
  }
  return sum * kBytesPerUsPerGBps;
}

std::size_t TimedPrices::period_at(double us) const {
  return static_cast<std::size_t>(std::ranges::upper_bound(prices_.from_us, us) - prices_.from_us.begin()) -
         1;
}

std::size_t TimedPrices::period_later(std::size_t period, double us) const {
  const double earliest = sum_rounded_down(prices_.from_us[period], us);
  return earliest >= prices_.until_us ? num_periods() : period_at(earliest);
}

double TimedPrices::bound(Exact payments, Exact tolerance) const {
  const Exact earned = earnings();
  if (!(payments > 0) || !(earned <= payments * (1 + tolerance))) {
    refuse_certificate(
        fmt::format("links can earn {} and the bytes have to pay {}; prices over time prove a bound where "
                    "the bytes have to pay as much",
                    static_cast<double>(earned), static_cast<double>(payments)));
  }
  return prices_.until_us;
}

void TimedPrices::check_periods() const {
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

void TimedPrices::read_prices() {
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

}  // namespace rondo::certificates
