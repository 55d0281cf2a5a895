#pragma once

#include <cstddef>
#include <vector>

#include "rondo/core/certificate.hpp"

/// Prices of links in periods of time: what certificates that have such have in common (FORMATS.md 3).
namespace rondo::certificates {

/// Times and sums of the check: 64 bits of mantissa.
using Exact = long double;

/// The greatest double that is not above the sum, so that comparisons of it with doubles are exact.
double sum_rounded_down(double a, double b);
/// The least double that is not below the sum.
double sum_rounded_up(double a, double b);
/// Relative: for sums that were rounded.
inline constexpr Exact kSumTolerance = 1e-12L;

class TimedPrices {
 public:
  /// Throws Error(bad_data) for periods that do not ascend from 0 to the end, places that do not ascend or do
  /// not exist, prices below 0, too much to check, and where bandwidth changes. Refers to both.
  TimedPrices(const Topology& topology, const PricesCertificate& prices);

  std::size_t num_periods() const { return prices_.from_us.size(); }
  double from_us(std::size_t period) const { return prices_.from_us[period]; }
  double end_us(std::size_t period) const {
    return period + 1 < num_periods() ? prices_.from_us[period + 1] : prices_.until_us;
  }
  /// What a byte pays for a start on the link in the period, with what the link's groups cost.
  Exact of(std::size_t period, LinkId link) const {
    return price_[period * topology_.num_links() + link.index()];
  }
  /// What all links and groups earn that are never idle.
  Exact earnings() const;
  /// The last period that begins at `us` or before.
  std::size_t period_at(double us) const;
  /// That in which something is at the earliest that is there in `period`, and `us` later; num_periods()
  /// where that is too late.
  std::size_t period_later(std::size_t period, double us) const;
  /// Refuses prices that let links earn more than `payments` (1 + `tolerance`); returns the bound, us.
  double bound(Exact payments, Exact tolerance) const;

 private:
  void check_periods() const;
  void read_prices();

  const Topology& topology_;
  const PricesCertificate& prices_;
  std::size_t num_rows_;
  std::vector<Exact> price_ = {};  ///< per period and link
};

}  // namespace rondo::certificates
