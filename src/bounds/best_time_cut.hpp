#pragma once

#include <optional>
#include <utility>

#include "rondo/core/certificate.hpp"
#include "rondo/core/error.hpp"

namespace rondo {

/// The time cut that proves most of those offered, if it is more than a time known before.
class BestTimeCut {
 public:
  BestTimeCut(const Topology& topology, const Demand& demand, double least_us)
      : topology_(topology), demand_(demand), us_(least_us) {}

  /// What is proven so far.
  double us() const { return us_; }
  const std::optional<LowerBound>& bound() const { return bound_; }
  std::optional<LowerBound> take() { return std::move(bound_); }

  bool keep_if_better(TimeCutCertificate cut) {
    const double us = cut.alpha_us[topology_.node_of(cut.gpu).index()];
    if (us <= us_) return false;
    try {
      sound_bound_of(topology_, demand_, cut);
    } catch (const Error&) {
      return false;
    }
    us_ = us;
    bound_ = LowerBound{us, std::move(cut)};
    return true;
  }

 private:
  const Topology& topology_;
  const Demand& demand_;
  double us_;
  std::optional<LowerBound> bound_ = std::nullopt;
};

}  // namespace rondo
