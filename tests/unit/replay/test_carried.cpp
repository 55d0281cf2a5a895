#include <gtest/gtest.h>

#include <algorithm>

#include "carried.hpp"
#include "rondo/core/random.hpp"

/// What a link carries, against the same of the definition in FORMATS.md 3, start by start.
namespace rondo::certificates::test_carried {
namespace {

double by_definition(std::vector<Started> starts, Wide bytes_per_us, Wide message_us, Wide apart_us) {
  const std::size_t last = starts.size() - 1;
  for (std::size_t i = last; i-- > 0;) starts[i].bytes = std::min(starts[i].bytes, starts[i + 1].bytes);
  Wide least = starts[last].bytes;
  for (std::size_t s = 0; s < last; ++s) {
    Wide most = 0;
    for (std::size_t first = s; first < last; ++first) {
      Wide room = bytes_per_us * (starts[last].us - starts[s].us);
      Wide bytes = starts[s].bytes;
      for (std::size_t i = s; i < last && room > 0; ++i) {
        const Wide us = i <= first ? starts[first].us : std::max(starts[i].us, starts[first].us + apart_us);
        if (us >= starts[last].us) break;
        const Wide weight = 1 + std::min(message_us, us - starts[s].us) / (starts[last].us - us);
        const Wide some = std::min(Wide{starts[i + 1].bytes} - starts[i].bytes, room / weight);
        bytes += some;
        room -= some * weight;
      }
      most = std::max(most, bytes);
    }
    least = std::min(least, most);
  }
  return static_cast<double>(least);
}

TEST(Carried, IsThatOfTheDefinition) {
  Random random(static_cast<std::uint64_t>(GTEST_FLAG_GET(random_seed)));
  Carried carried;
  int short_of_bandwidth = 0;
  int short_of_messages = 0;
  int apart = 0;
  for (int trial = 0; trial < 5000; ++trial) {
    std::vector<Started> starts;
    Wide us = 0;
    double bytes = 0;
    for (std::size_t i = 1 + random.below(12); i-- > 0; us += 0.1 + random.unit()) {
      if (random.unit() < 0.6) bytes += 1000 * random.unit();
      // Bounds of different origin, so that one may be less than an earlier one.
      starts.push_back({us, bytes * (random.unit() < 0.8 ? 1 : 1 + random.unit())});
    }
    const Wide bytes_per_us = 10 + 2000 * random.unit();
    const Wide message_us = random.unit() < 0.2 ? 0 : 2 * random.unit();
    const Wide apart_us = random.unit() < 0.4   ? 0
                          : random.unit() < 0.5 ? message_us
                                                : message_us * random.unit();
    const double whole = by_definition(starts, bytes_per_us, message_us, apart_us);
    const double side_by_side = by_definition(starts, bytes_per_us, message_us, 0);
    const double without_costs = by_definition(starts, bytes_per_us, 0, 0);
    if (without_costs < starts.back().bytes) ++short_of_bandwidth;
    if (side_by_side < without_costs) ++short_of_messages;
    if (whole < side_by_side) ++apart;
    Tightest tightest{random.below(14), random.below(14)};
    EXPECT_NEAR(carried.most(starts, bytes_per_us, message_us, apart_us, tightest), whole, 1e-12 * whole)
        << trial;
  }
  EXPECT_GE(short_of_bandwidth, 1000);
  EXPECT_GE(short_of_messages, 500);
  EXPECT_GE(apart, 200);
}

}  // namespace
}  // namespace rondo::certificates::test_carried
