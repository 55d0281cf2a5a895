#include "known_algorithm.hpp"

/// Every pair of GPUs without others between: NCCL's AllToAll, and sums in two steps.
namespace rondo {
namespace {

/// In step s every member sends to the s-th after it, so that no two send to one.
KnownAlgorithm directly(const Members& members) {
  const int count = members.count();
  return {.spread =
              [count](int, int root) {
                StepMessages messages;
                for (int s = 1; s < count; ++s) messages.push_back({root, (root + s) % count, s});
                return messages;
              },
          .route =
              [count](int from, int to) {
                return StepMessages{{from, to, (to - from + count) % count}};
              }};
}

}  // namespace

EngineInfo direct_engine() {
  return quick_engine(known_engine(
      "direct", "from every GPU straight to every other; AllReduce in two such steps, a part at each GPU",
      directly));
}

}  // namespace rondo
