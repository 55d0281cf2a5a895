#include "carried.hpp"

#include <algorithm>

namespace rondo::certificates {

double Carried::most(std::vector<Started>& starts, Wide bytes_per_us, Wide message_us) {
  const std::size_t last = starts.size() - 1;
  const Wide until_us = starts[last].us;
  for (std::size_t i = last; i-- > 0;) starts[i].bytes = std::min(starts[i].bytes, starts[i + 1].bytes);
  const auto bytes_between = [&](std::size_t i, std::size_t k) {
    return Wide{starts[k].bytes} - starts[i].bytes;
  };
  // A message of b bytes that starts at x has the rate b / (until - x) at least.
  rates_.assign(starts.size(), 0);
  for (std::size_t i = 0; i < last; ++i)
    rates_[i + 1] = rates_[i] + bytes_between(i, i + 1) / (until_us - starts[i].us);

  double least = starts[last].bytes;
  std::size_t reached = last;  // the first start before which so many may have started
  std::size_t behind = last;   // the first whose message costs come wholly after those of the start `i`
  for (std::size_t i = last; i-- > 0;) {
    const Wide from_us = starts[i].us;
    const Wide room = bytes_per_us * (until_us - from_us);
    while (behind > i && starts[behind - 1].us >= from_us + message_us) --behind;
    // What of the link is taken by the bytes that start in order between starts i and k.
    const auto taken = [&](std::size_t k) {
      const std::size_t near = std::min(behind, k);
      return (until_us - from_us) * (rates_[near] - rates_[i]) + bytes_between(near, k) +
             message_us * (rates_[k] - rates_[near]);
    };
    const auto taken_by_one = [&](std::size_t k) {
      return 1 + std::min(message_us, starts[k].us - from_us) / (until_us - starts[k].us);
    };
    if (starts[i].bytes < least) {
      while (starts[reached - 1].bytes >= least) --reached;
      std::size_t k = reached - 1;
      if (taken(k) + (Wide{least} - starts[k].bytes) * taken_by_one(k) > room) {
        while (taken(k) > room) --k;
        const Wide in_part = (room - taken(k)) / taken_by_one(k);
        least = std::min(least, static_cast<double>(starts[k].bytes + in_part));
        reached = k + 1;
      }
    }
    // From an earlier start on there is more room, and no more of it is taken.
    if (starts[i].bytes == starts.front().bytes && starts[behind].bytes == starts[i].bytes) break;
  }
  return least;
}

}  // namespace rondo::certificates
