#include "pdhg_rules.hpp"

#include <algorithm>
#include <cmath>

namespace rondo {
namespace {

constexpr double kSufficientDecay = 0.2;
constexpr double kNecessaryDecay = 0.5;
constexpr double kLongRun = 0.36;
constexpr double kProportional = 0.99;
constexpr double kIntegral = 0.01;
constexpr double kForget = 0.3;
constexpr double kLeastDistance = 1e-12;
constexpr double kGreatestDistance = 1e12;
/// Limit of the primal weight with costs and bounds scaled to norm 1. Beyond it the steps of one side vanish
/// in the rounding errors of the other, and the weight cannot recover.
constexpr double kGreatestWeight = 1e6;
constexpr double kRayTolerance = 1e-8;

}  // namespace

bool is_optimal(const PdhgResiduals& r, double tolerance) {
  const double gap = std::abs(r.primal_objective - r.dual_objective);
  return gap <= tolerance * (1 + std::abs(r.primal_objective) + std::abs(r.dual_objective)) &&
         r.primal <= tolerance * (1 + r.bound_norm) && r.dual <= tolerance * (1 + r.cost_norm);
}

bool must_restart(const PdhgRun& run) {
  if (run.now <= kSufficientDecay * run.first) return true;
  if (run.now <= kNecessaryDecay * run.first && run.now > run.previous) return true;
  return static_cast<double>(run.steps) >= kLongRun * static_cast<double>(run.total_steps);
}

double PrimalWeight::within_reason(double weight) {
  return std::clamp(weight, 1 / kGreatestWeight, kGreatestWeight);
}

void PrimalWeight::update(double primal_distance, double dual_distance) {
  for (const double distance : {primal_distance, dual_distance}) {
    if (!(distance > kLeastDistance && distance < kGreatestDistance)) return;
  }
  const double error = std::log(dual_distance / primal_distance / weight_);
  error_sum_ = kForget * error_sum_ + error;
  weight_ = within_reason(weight_ * std::exp(kProportional * error + kIntegral * error_sum_));
}

bool is_certificate(double gain, double violation) {
  return gain > 0 && violation <= kRayTolerance * gain;
}

}  // namespace rondo
