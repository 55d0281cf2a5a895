#include "joined_parts.hpp"

#include <algorithm>
#include <vector>

namespace rondo {

JoinedPlan of_first_chunks(const JoinedPlan& plan, std::size_t chunks) {
  JoinedPlan first;
  std::vector<ChunkId> together;
  for (const JoinedTransfer& t : plan.transfers) {
    together.clear();
    for (const ChunkId c : plan.chunks_of(t)) {
      if (c.index() % chunks == 0) together.push_back(ChunkId{c.index() / chunks});
    }
    if (!together.empty()) first.add(t.hop, together, t.start_us);
  }
  return first;
}

JoinedPlan in_halves(const JoinedPlan& plan) {
  JoinedPlan halves;
  std::vector<ChunkId> together;
  for (const JoinedTransfer& t : plan.transfers) {
    together.clear();
    for (const ChunkId c : plan.chunks_of(t)) {
      together.push_back(ChunkId{2 * c.index()});
      together.push_back(ChunkId{2 * c.index() + 1});
    }
    halves.add(t.hop, together, t.start_us);
  }
  return halves;
}

JoinedPlan repeated(const JoinedPlan& plan, std::size_t times, const JoinedSpace& space) {
  std::vector<double> busy_us(space.topology().num_links(), 0);
  for (const JoinedTransfer& t : plan.transfers) {
    const double bytes = space.demand().bytes(plan.chunks_of(t));
    for (const HopLink& part : space.hop(t.hop).links) busy_us[part.link.index()] += part.load_us(bytes);
  }
  const double interval_us = std::ranges::max(busy_us);
  struct Step {
    double start_us;
    std::size_t transfer;
    std::size_t time;
  };
  std::vector<Step> steps;
  for (std::size_t time = 0; time < times; ++time) {
    for (std::size_t t = 0; t < plan.transfers.size(); ++t)
      steps.push_back({plan.transfers[t].start_us + static_cast<double>(time) * interval_us, t, time});
  }
  std::ranges::stable_sort(steps, {}, &Step::start_us);
  JoinedPlan all;
  std::vector<ChunkId> together;
  for (const Step& step : steps) {
    together.clear();
    for (const ChunkId c : plan.chunks_of(step.transfer))
      together.push_back(ChunkId{c.index() * times + step.time});
    all.add(plan.transfers[step.transfer].hop, together, step.start_us);
  }
  return all;
}

}  // namespace rondo
