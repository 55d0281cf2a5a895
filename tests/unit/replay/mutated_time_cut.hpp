#pragma once

#include <algorithm>
#include <utility>

#include "rondo/core/certificate.hpp"
#include "rondo/core/random.hpp"

namespace rondo {

/// One of its times, several of them or its GPU is another.
inline TimeCutCertificate mutated(TimeCutCertificate cut, Random& random) {
  const auto some = [&]() -> double& { return cut.alpha_us[random.below(cut.alpha_us.size())]; };
  const double by_us = (random.unit() < 0.5 ? 1 : 0.01) * (1 + static_cast<int>(random.below(3)));
  switch (random.below(7)) {
    case 0:
      some() += by_us;
      break;
    case 1: {
      double& time = some();
      time = std::max(0.0, time - by_us);
      break;
    }
    case 2:
      std::swap(some(), some());
      break;
    case 3:  // one opens when another one does
      some() = some();
      break;
    case 4:  // all that opens after a time opens later, or earlier
      for (const double from_us = some(), shift_us = random.unit() < 0.7 ? by_us : -by_us;
           double& time : cut.alpha_us) {
        if (time >= from_us) time = std::max(0.0, time + shift_us);
      }
      break;
    case 5:
      cut.gpu = GpuId(random.below(cut.alpha_us.size()));
      break;
    default:
      for (double& time : cut.alpha_us) time *= 1 + 0.01 * by_us;
  }
  return cut;
}

/// Sometimes one more of so many GPUs is a source, or one less; else the same.
inline TimeCutCertificate mutated(TimeCutCertificate cut, Random& random, std::size_t gpus) {
  if (random.unit() > 0.3) return mutated(std::move(cut), random);
  const GpuId other(random.below(gpus));
  const auto at = std::ranges::lower_bound(cut.sources, other);
  if (at == cut.sources.end() || *at != other)
    cut.sources.insert(at, other);
  else if (cut.sources.size() > 1)
    cut.sources.erase(at);
  return random.unit() < 0.5 ? mutated(std::move(cut), random) : cut;
}

}  // namespace rondo
