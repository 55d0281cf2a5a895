#include <algorithm>

#include "known_algorithm.hpp"

/// Bruck, Ho, Kipnis, Upfal, Weathersby (1997): as few steps as can be for any number of GPUs.
namespace rondo {
namespace {

/// In the step of distance d those that hold what came from up to d - 1 after them send it d further down.
StepMessages all_gather(int root, int count) {
  StepMessages messages;
  for (int distance = 1, step = 0; distance < count; distance *= 2, ++step) {
    for (int held = 0; held < std::min(distance, count - distance); ++held) {
      const int from = (root - held + count) % count;
      messages.push_back({from, (from - distance + count) % count, step});
    }
  }
  return messages;
}

/// Every bit of the distance is a message so far.
StepMessages all_to_all(int from, int to, int count) {
  StepMessages messages;
  const int distance = (to - from + count) % count;
  for (int bit = 1, step = 0; bit <= distance; bit *= 2, ++step) {
    if ((distance & bit) == 0) continue;
    const int next = (from + bit) % count;
    messages.push_back({from, next, step});
    from = next;
  }
  return messages;
}

}  // namespace

EngineInfo bruck_engine() {
  return known_engine("bruck",
                      "messages of distance 1, 2, 4, ...; AllGather and AllToAll in ceil(log2 n) steps",
                      [](const Members& members) -> KnownAlgorithm {
                        const int count = members.count();
                        return {.spread = [count](int, int root) { return all_gather(root, count); },
                                .route = [count](int from, int to) { return all_to_all(from, to, count); }};
                      });
}

}  // namespace rondo
