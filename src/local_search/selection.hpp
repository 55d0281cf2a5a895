#pragma once

#include <cmath>
#include <cstdint>

#include "rondo/core/random.hpp"
#include "rondo/local_search/neighbours.hpp"

/// What moves of local search have in common.
namespace rondo {

/// 2^x with x uniform in [least, most).
inline double power_of_two(Random& random, double least, double most) {
  return std::exp2(least + (most - least) * random.unit());
}

inline bool one_in(Random& random, std::size_t n) {
  return random.below(n) == 0;
}

double mean_duration_us(const TransferPlan& plan, const PlanSpace& space);

/// `plan` justified, or as it is where it is much later than the incumbent.
TransferPlan justified_if_near(const TransferPlan& plan, const SurveyedPlan& incumbent,
                               const PlanSpace& space, double bound_us);

/// A random choice of transfers: in a time window all of them, the critical ones, those at a GPU or chassis
/// that ends late, or those of a part of the chunks.
class Selection {
 public:
  /// `chunk_us`: the mean duration of a transfer.
  Selection(const SurveyedPlan& incumbent, const PlanSpace& space, double chunk_us, Random& random);

  bool operator()(std::size_t transfer) const;

 private:
  enum class Kind : std::uint8_t { all, critical, gpu, chassis, chunks };
  static constexpr std::size_t kKinds = 5;

  bool same_chassis(GpuId g) const;

  const SurveyedPlan& incumbent_;
  const PlanSpace& space_;
  const Topology& topology_;
  double from_us_, until_us_;
  Kind kind_;
  double slack_us_;
  GpuId gpu_;
  std::size_t chunk_classes_;
  std::uint64_t salt_;
};

}  // namespace rondo
