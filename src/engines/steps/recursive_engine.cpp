#include <algorithm>

#include "known_algorithm.hpp"

/// Recursive doubling, and for sums recursive halving before it (Rabenseifner, 2004).
namespace rondo {
namespace {

/// In step s those that hold the data send them to the member whose number differs in bit s. Members beyond
/// the greatest power of two stand behind one of the first each.
StepMessages doubling(int root, int count) {
  int core = 1;
  while (2 * core <= count) core *= 2;
  StepMessages messages;
  const int start = root < core ? root : root - core;
  if (start != root) messages.push_back({root, start, 0});
  int step = 1;
  std::vector<int> holders{start};
  for (int bit = 1; bit < core; bit *= 2, ++step) {
    const std::size_t known = holders.size();
    for (std::size_t h = 0; h < known; ++h) {
      messages.push_back({holders[h], holders[h] ^ bit, step});
      holders.push_back(holders[h] ^ bit);
    }
  }
  for (int behind = core; behind < count; ++behind) {
    if (behind != root) messages.push_back({behind - core, behind, step});
  }
  return messages;
}

}  // namespace

EngineInfo recursive_engine() {
  return known_engine(
      "recursive",
      "recursive doubling: GPUs whose numbers differ in one bit exchange what they have; sums by "
      "recursive halving before",
      [](const Members& members) -> KnownAlgorithm {
        const int count = members.count();
        return {.spread = [count](int, int root) { return doubling(root, count); }};
      });
}

}  // namespace rondo
