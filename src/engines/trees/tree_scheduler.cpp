#include "tree_scheduler.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <set>
#include <tuple>

#include "rondo/core/error.hpp"
#include "rondo/core/hops.hpp"
#include "rondo/core/random.hpp"

namespace rondo {
namespace {

/// A chunk over one arc of its tree.
struct Task {
  int hop = 0;
  ChunkId chunk;
  double to_go_us = 0;         ///< from its start until the last GPU below has the chunk
  std::vector<int> next = {};  ///< tasks that its arrival allows
};

/// What waits for a hop.
struct Waiting {
  double to_go_us;
  std::uint64_t chance;
  int task;
  friend bool operator<(const Waiting& a, const Waiting& b) {
    return std::tie(a.to_go_us, a.chance, b.task) < std::tie(b.to_go_us, b.chance, a.task);
  }
};

class TreeScheduler {
 public:
  TreeScheduler(const Topology& topology, const TreePacking& packing, const Demand& demand,
                std::uint64_t seed)
      : bytes_(*demand.uniform_chunk_bytes()), seed_(seed), timetable_(topology) {
    for (const TreeArc& arc : packing.arcs) hops_.push_back(make_hop(topology, arc.path));
    queues_.resize(hops_.size());
    for (const Hop& hop : hops_) {
      for (const HopLink& part : hop.links) offsets_[part.link].insert(part.offset_us_of(bytes_));
    }
    std::vector<std::size_t> next_chunk(topology.num_gpus());  // per origin
    for (std::size_t i = 0; i < demand.contributions().size(); ++i) {
      next_chunk[demand.contributions()[i].origin.index()] =
          i * static_cast<std::size_t>(demand.chunks_per_contribution());
    }
    for (const PackedTree& tree : packing.trees) {
      for (std::int64_t i = 0; i < tree.multiplicity; ++i)
        add_tree(packing, tree, ChunkId{next_chunk[tree.root.index()]++});
    }
  }

  Schedule run() {
    while (!events_.empty()) {
      const double t = events_.begin()->first;
      const double until = t + time_slack_us(t);
      while (!events_.empty() && events_.begin()->first <= until) {
        for (const int task : events_.begin()->second) make_ready(task);
        events_.erase(events_.begin());
      }
      start_what_can(t);
    }
    for (const auto& queue : queues_) {
      if (!queue.empty()) throw Error(ExitCode::internal, "engine trees: a chunk was left waiting");
    }
    canonicalise(schedule_);
    return std::move(schedule_);
  }

 private:
  void add_tree(const TreePacking& packing, const PackedTree& tree, ChunkId chunk) {
    std::map<GpuId, int> task_into;
    for (const int a : tree.arcs) {
      const TreeArc& arc = packing.arcs[static_cast<std::size_t>(a)];
      const int task = static_cast<int>(tasks_.size());
      tasks_.push_back({a, chunk});
      task_into[arc.dst] = task;
      if (arc.src == tree.root) {
        events_[0].push_back(task);
      } else {
        tasks_[static_cast<std::size_t>(task_into.at(arc.src))].next.push_back(task);
      }
    }
    // Children come after their parents.
    for (std::size_t n = tree.arcs.size(), t = tasks_.size(); n > 0; --n) {
      Task& task = tasks_[--t];
      for (const int below : task.next)
        task.to_go_us = std::max(task.to_go_us, tasks_[static_cast<std::size_t>(below)].to_go_us);
      task.to_go_us += hop_of(task).duration_us(bytes_);
    }
  }

  const Hop& hop_of(const Task& task) const { return hops_[static_cast<std::size_t>(task.hop)]; }

  void make_ready(int task) {
    const Task& ready = tasks_[static_cast<std::size_t>(task)];
    const std::uint64_t chance =
        mix_bits(seed_ + 0x9e3779b97f4a7c15ULL * static_cast<std::uint64_t>(task + 1));
    queues_[static_cast<std::size_t>(ready.hop)].push({ready.to_go_us, chance, task});
  }

  /// The hops with the most urgent chunks first.
  void start_what_can(double t) {
    std::vector<std::pair<Waiting, std::size_t>> first;
    for (std::size_t h = 0; h < queues_.size(); ++h) {
      if (!queues_[h].empty()) first.emplace_back(queues_[h].top(), h);
    }
    std::ranges::sort(first, [](const auto& a, const auto& b) { return b.first < a.first; });
    for (const auto& [waiting, h] : first) {
      const Task& task = tasks_[static_cast<std::size_t>(waiting.task)];
      const Hop& hop = hops_[h];
      if (!timetable_.can_start(hop, bytes_, t)) continue;
      queues_[h].pop();
      const std::size_t sent = schedule_.sends.size();
      const double arrival = timetable_.reserve(hop, task.chunk, bytes_, t, schedule_.sends);
      schedule_.finish_us = std::max(schedule_.finish_us, arrival);
      std::vector<int>& allowed = events_[arrival];
      allowed.insert(allowed.end(), task.next.begin(), task.next.end());
      // Hops that begin with the link may start again, and those that meet it later on so much earlier.
      for (std::size_t s = sent; s < schedule_.sends.size(); ++s) {
        for (const double offset : offsets_.at(schedule_.sends[s].link))
          events_.try_emplace(std::max(t, schedule_.sends[s].end_us - offset));
      }
    }
  }

  double bytes_;
  std::uint64_t seed_;
  LinkTimetable timetable_;
  std::vector<Hop> hops_;
  std::vector<Task> tasks_;
  std::vector<std::priority_queue<Waiting>> queues_;  ///< per hop
  std::map<double, std::vector<int>> events_;         ///< tasks that become ready; none: a link falls idle
  std::map<LinkId, std::set<double>> offsets_;        ///< when after its start a hop uses the link
  Schedule schedule_;
};

}  // namespace

Schedule schedule_trees(const Topology& topology, const TreePacking& packing, const Demand& demand,
                        std::uint64_t seed) {
  return TreeScheduler(topology, packing, demand, seed).run();
}

}  // namespace rondo
