#pragma once

#include <vector>

#include "rondo/core/random.hpp"
#include "rondo/tuning/tuner.hpp"

namespace rondo::tuning {

/// Chooses points by what is known of others.
class Estimator {
 public:
  explicit Estimator(const Space& space) : space_(space) {}

  /// Up to `count` points that no trial has, each once. Every tenth one is drawn uniformly, all of them
  /// without `is_informed` or where less is known than there are parameters to tell apart.
  std::vector<std::size_t> choose(const std::vector<Trial>& trials, std::size_t count, bool is_informed,
                                  Random& random) const;

  /// For each parameter the shares of its values among the good points, smoothed by one of each.
  std::vector<std::vector<double>> good_values(const std::vector<Trial>& trials) const;

 private:
  const Space& space_;
};

/// Sum over parameters of the divergence of the first from the second, in nats.
double divergence(const std::vector<std::vector<double>>& from, const std::vector<std::vector<double>>& to);

}  // namespace rondo::tuning
