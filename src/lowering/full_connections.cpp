#include "steps.hpp"

namespace rondo::lowering {

bool ends_within(const StepGraph& graph, const Plan& plan, int depth) {
  const std::size_t num_steps = graph.nodes.size();
  std::vector<std::vector<int>> followers(num_steps);
  std::vector<int> waits_left(num_steps, 0);
  const auto follows = [&](int later, int earlier) {
    if (earlier < 0) return;
    followers[static_cast<std::size_t>(earlier)].push_back(later);
    ++waits_left[static_cast<std::size_t>(later)];
  };
  // A threadblock sends on one connection, so its sends are those of the connection, in order.
  std::vector<std::vector<int>> received(plan.tbs.size());
  for (int n = 0; n < static_cast<int>(num_steps); ++n) {
    const StepNode& node = graph.nodes[static_cast<std::size_t>(n)];
    follows(n, node.previous);
    follows(n, node.sender);
    for (const int other : node.waits_for) follows(n, other);
    if (node.sender < 0) continue;
    auto& mine = received[static_cast<std::size_t>(graph.nodes[static_cast<std::size_t>(node.sender)].tb)];
    mine.push_back(n);
    if (std::ssize(mine) <= depth) continue;
    follows(node.sender, mine[mine.size() - 1 - static_cast<std::size_t>(depth)]);
  }
  std::vector<int> ended;
  for (std::size_t n = 0; n < num_steps; ++n) {
    if (waits_left[n] == 0) ended.push_back(static_cast<int>(n));
  }
  for (std::size_t k = 0; k < ended.size(); ++k) {
    for (const int follower : followers[static_cast<std::size_t>(ended[k])]) {
      if (--waits_left[static_cast<std::size_t>(follower)] == 0) ended.push_back(follower);
    }
  }
  return ended.size() == num_steps;
}

}  // namespace rondo::lowering
