#include "switch_copies.hpp"

#include <algorithm>

#include "copies.hpp"
#include "rondo/core/index.hpp"
#include "rondo/core/time_slack.hpp"

namespace rondo {

SwitchCopies::SwitchCopies(const PlanSpace& space)
    : space_(space),
      trees_(space.demand.num_chunks()),
      hops_(space.topology->num_gpus() * space.topology->num_gpus()) {
  for (std::size_t h = 0; h < space.hops.size(); ++h) {
    const Hop& each = space.hops[h];
    hops_[each.src.index() * space.topology->num_gpus() + each.dst.index()].push_back(static_cast<int>(h));
  }
}

SwitchCopies::Branch SwitchCopies::soonest(ChunkId chunk, GpuId to,
                                           const InsertionTimetable& timetable) const {
  Branch best;
  const double bytes = space_.demand.bytes(chunk);
  const auto& trees = trees_[chunk.index()];
  for (std::size_t t = 0; t < trees.size(); ++t) {
    const GpuId src = hop(trees[t].hops.front()).src;
    for (const int h : hops_[src.index() * space_.topology->num_gpus() + to.index()]) {
      const double start_us = trees[t].start_us;
      const double arrival_us = start_us + hop(h).duration_us(bytes);
      if (arrival_us >= best.arrival_us) continue;
      const std::size_t first_link = branches_at(trees[t], h);
      if (first_link == 0) continue;
      if (!timetable.is_free(hop(h), bytes, start_us, first_link)) continue;
      best = {h, first_link, start_us, arrival_us, t};
    }
  }
  return best;
}

std::size_t SwitchCopies::branches_at(const Tree& tree, int h) const {
  std::size_t first_link = 0;
  for (const int other : tree.hops) {
    const std::size_t common = links_in_common(hop(other), hop(h));
    if (common > first_link && may_be_copied(*space_.topology, hop(other), hop(h))) first_link = common;
  }
  const bool again = std::ranges::any_of(
      tree.hops, [&](int other) { return enters_again(*space_.topology, hop(h), first_link, hop(other)); });
  return again ? 0 : first_link;
}

void SwitchCopies::begin(ChunkId chunk, int h, double start_us) {
  if (hop(h).links.size() > 1 && hop(h).divisor == 1) trees_[chunk.index()].push_back({start_us, {h}});
}

void SwitchCopies::add(ChunkId chunk, const Branch& branch, InsertionTimetable& timetable,
                       std::vector<Send>& sends) {
  const double bytes = space_.demand.bytes(chunk);
  timetable.reserve(hop(branch.hop), bytes, branch.start_us, branch.first_link);
  trees_[chunk.index()][branch.tree].hops.push_back(branch.hop);
  std::vector<Send> all;
  append_sends(*space_.topology, hop(branch.hop), chunk, bytes, branch.start_us, all);
  sends.insert(sends.end(), all.begin() + static_cast<std::ptrdiff_t>(branch.first_link), all.end());
}

}  // namespace rondo
