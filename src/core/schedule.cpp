#include "rondo/core/schedule.hpp"

#include <algorithm>
#include <tuple>

namespace rondo {

bool comes_before(const Send& a, const Send& b) {
  return std::tie(a.start_us, a.link, a.chunk) < std::tie(b.start_us, b.link, b.chunk);
}

void canonicalise(Schedule& schedule) {
  std::stable_sort(schedule.sends.begin(), schedule.sends.end(), comes_before);
}

void delay(Send& send, double by_us) {
  send.start_us += by_us;
  send.end_us += by_us;
  send.arrival_us += by_us;
}

void delay(Schedule& schedule, double by_us) {
  for (Send& send : schedule.sends) delay(send, by_us);
  schedule.finish_us += by_us;
  canonicalise(schedule);
}

}  // namespace rondo
