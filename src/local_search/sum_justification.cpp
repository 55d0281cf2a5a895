#include <algorithm>
#include <utility>
#include <vector>

#include "rondo/core/index.hpp"
#include "rondo/core/insertion_timetable.hpp"
#include "rondo/core/time_slack.hpp"
#include "rondo/local_search/ascending.hpp"
#include "sum_trees.hpp"

namespace rondo {
namespace {

class SumJustification {
 public:
  SumJustification(const SumTrees& trees, const SumSpace& space)
      : space_(space), trees_(trees), finish_us_(trees.finish_us()), limits_(trees.of_chunk.size()) {
    for (std::size_t c = 0; c < trees_.of_chunk.size(); ++c) {
      const SumTrees::Tree& tree = trees_.of_chunk[c];
      for (std::size_t i = 0; i < tree.sums.size(); ++i)
        groups_.push_back({c, true, {i}, space.horizon_us - tree.sums[i].arrival_us});
      std::vector<std::size_t> group_of(tree.spread.size());
      for (std::size_t i = 0; i < tree.spread.size(); ++i) {
        const Forest::Branch& branch = tree.spread[i];
        group_of[i] = branch.copy_of < 0 ? groups_.size() : group_of[index(branch.copy_of)];
        if (branch.copy_of < 0) groups_.push_back({c, false, {}, branch.start_us});
        groups_[group_of[i]].branches.push_back(i);
      }
    }
  }

  SumTrees run() {
    move_to_latest();
    move_to_earliest();
    return std::move(trees_);
  }

 private:
  /// A transfer, or one and what switches copy of it, which all start at once.
  struct Group {
    std::size_t chunk;
    bool adds;  ///< else it spreads
    std::vector<std::size_t> branches;
    double start_us;
  };
  /// Of one chunk, per branch: when what waits for it starts, or what it waits for has arrived.
  struct Limits {
    std::vector<double> sums = {};
    std::vector<double> spread = {};
    double meets_us = 0;
  };

  Forest::Tree& tree_of(const Group& group) {
    SumTrees::Tree& tree = trees_.of_chunk[group.chunk];
    return group.adds ? tree.sums : tree.spread;
  }
  const Hop& hop_of(const Forest::Branch& branch) const { return space_.spread.hops[index(branch.hop)]; }
  double duration_us(const Group& group, const Forest::Branch& branch) const {
    return hop_of(branch).duration_us(space_.spread.demand.bytes(ChunkId{group.chunk}));
  }
  double end_us(const Group& group) {
    double longest_us = 0;
    for (const std::size_t b : group.branches)
      longest_us = std::max(longest_us, duration_us(group, tree_of(group)[b]));
    return group.start_us + longest_us;
  }
  void reset_limits(double us) {
    for (std::size_t c = 0; c < limits_.size(); ++c) {
      limits_[c].sums.assign(trees_.of_chunk[c].sums.size(), us);
      limits_[c].spread.assign(trees_.of_chunk[c].spread.size(), us);
      limits_[c].meets_us = us;
    }
  }

  /// From its start on, in the direction of `timetable`, the first that all branches allow; reserves it.
  void place(Group& group, InsertionTimetable& timetable, bool is_forwards) {
    const Forest::Tree& tree = tree_of(group);
    const double bytes = space_.spread.demand.bytes(ChunkId{group.chunk});
    const auto read = [&](double start_us, double duration) {
      return is_forwards ? start_us : finish_us_ - start_us - duration;
    };
    for (bool moved = true; moved;) {
      moved = false;
      for (const std::size_t b : group.branches) {
        const double duration = duration_us(group, tree[b]);
        const double from = read(group.start_us, duration);
        const double t = timetable.earliest_start(hop_of(tree[b]), bytes, from, tree[b].first_link);
        if (t <= from + time_slack_us(from)) continue;
        group.start_us = read(t, duration);
        moved = group.branches.size() > 1;
      }
    }
    for (const std::size_t b : group.branches)
      timetable.reserve(hop_of(tree[b]), bytes, read(group.start_us, duration_us(group, tree[b])),
                        tree[b].first_link);
  }

  void move_to_latest() {
    std::vector<double> keys;
    for (const Group& group : groups_) keys.push_back(-end_us(group));
    reset_limits(finish_us_);
    InsertionTimetable timetable(*space_.spread.topology, InsertionTimetable::Reading::backwards,
                                 space_.spread.concurrency);
    for (const int g : ascending(keys)) {
      Group& group = groups_[index(g)];
      const Forest::Tree& tree = tree_of(group);
      Limits& limits = limits_[group.chunk];
      const int cause = tree[group.branches.front()].cause;
      group.start_us = finish_us_;
      for (const std::size_t b : group.branches) {
        const double due_us = !group.adds ? limits.spread[b]
                              : cause < 0 ? limits.meets_us
                                          : limits.sums[index(cause)];
        group.start_us = std::min(group.start_us, due_us - duration_us(group, tree[b]));
      }
      place(group, timetable, false);
      if (group.adds) {
        limits.sums[group.branches.front()] = group.start_us;
      } else {
        double& due_us = cause < 0 ? limits.meets_us : limits.spread[index(cause)];
        due_us = std::min(due_us, group.start_us);
      }
    }
  }

  void move_to_earliest() {
    std::vector<double> keys;
    for (const Group& group : groups_) keys.push_back(group.start_us);
    reset_limits(0);
    for (SumTrees::Tree& tree : trees_.of_chunk) {
      tree.begins_us = finish_us_;
      tree.ends_us = 0;
    }
    InsertionTimetable timetable(*space_.spread.topology, InsertionTimetable::Reading::forwards,
                                 space_.spread.concurrency);
    for (const int g : ascending(keys)) {
      Group& group = groups_[index(g)];
      SumTrees::Tree& both = trees_.of_chunk[group.chunk];
      Forest::Tree& tree = tree_of(group);
      Limits& limits = limits_[group.chunk];
      const std::size_t first = group.branches.front();
      const int cause = tree[first].cause;
      group.start_us = group.adds  ? limits.sums[first]
                       : cause < 0 ? limits.meets_us
                                   : limits.spread[index(cause)];
      place(group, timetable, true);
      for (const std::size_t b : group.branches) {
        const double arrival_us = group.start_us + duration_us(group, tree[b]);
        if (group.adds) {
          tree[b].start_us = space_.horizon_us - arrival_us;
          tree[b].arrival_us = space_.horizon_us - group.start_us;
          double& there_us = cause < 0 ? limits.meets_us : limits.sums[index(cause)];
          there_us = std::max(there_us, arrival_us);
          both.root.ready_us = limits.meets_us;
          both.begins_us = std::min(both.begins_us, group.start_us);
        } else {
          tree[b].start_us = group.start_us;
          tree[b].arrival_us = arrival_us;
          limits.spread[b] = arrival_us;
          both.ends_us = std::max(both.ends_us, arrival_us);
        }
      }
    }
  }

  const SumSpace& space_;
  SumTrees trees_;
  double finish_us_;
  std::vector<Limits> limits_;  ///< by chunk
  std::vector<Group> groups_ = {};
};

}  // namespace

SumTrees justified(const SumTrees& trees, const SumSpace& space) {
  return SumJustification(trees, space).run();
}

}  // namespace rondo
