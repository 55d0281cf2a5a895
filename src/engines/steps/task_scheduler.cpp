#include "task_scheduler.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <queue>
#include <tuple>
#include <utility>

#include "rondo/core/error.hpp"
#include "rondo/core/index.hpp"
#include "rondo/core/link_timetable.hpp"
#include "rondo/core/random.hpp"

namespace rondo {
namespace {

/// What waits for a hop.
struct WaitingTask {
  double rank;
  std::uint64_t chance;
  double bytes;
  int task;
  friend bool operator<(const WaitingTask& a, const WaitingTask& b) {
    return std::tie(b.rank, a.chance, b.task) < std::tie(a.rank, b.chance, a.task);
  }
};

class TaskScheduler {
 public:
  TaskScheduler(const Topology& topology, const Demand& demand, const TaskGraph& graph,
                const std::vector<double>& rank, std::uint64_t seed, int concurrency)
      : topology_(topology),
        demand_(demand),
        graph_(graph),
        rank_(rank),
        seed_(seed),
        timetable_(topology, concurrency),
        marks_(topology) {
    queues_.resize(graph.hops.size());
    is_looked_at_.assign(graph.hops.size(), 0);
    missing_.reserve(graph.tasks.size());
    for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
      const Task& task = graph.tasks[t];
      missing_.push_back({task.rests_on, demand.ready_us(task.chunk)});
      if (task.rests_on == 0) events_[demand.ready_us(task.chunk)].tasks.push_back(static_cast<int>(t));
    }
  }

  Schedule run() {
    while (!events_.empty()) {
      const double t = events_.begin()->first;
      const double until = t + time_slack_us(t);
      while (!events_.empty() && events_.begin()->first <= until) {
        for (const int task : events_.begin()->second.tasks) make_ready(task);
        for (const int hop : events_.begin()->second.hops) look_at(hop);
        events_.erase(events_.begin());
      }
      start_what_can(t);
    }
    if (num_started_ != graph_.tasks.size())
      throw Error(ExitCode::internal, "a task was left waiting: tasks rest on each other");
    canonicalise(schedule_);
    return std::move(schedule_);
  }

 private:
  const Task& task_of(int task) const { return graph_.tasks[index(task)]; }

  void make_ready(int task) {
    const std::uint64_t chance =
        mix_bits(seed_ + 0x9e3779b97f4a7c15ULL * static_cast<std::uint64_t>(task + 1));
    queues_[index(task_of(task).hop)].push(
        {rank_[index(task)], chance, demand_.bytes(task_of(task).chunk), task});
    look_at(task_of(task).hop);
  }

  void look_at(int hop) {
    if (std::exchange(is_looked_at_[index(hop)], 1) == 0) looked_at_.push_back(hop);
  }

  /// Links only fill up: before the earliest start of what waits for the hop, nothing can start over it.
  void look_again(int hop, double t) {
    const auto& queue = queues_[index(hop)];
    if (queue.empty()) return;
    const double next = timetable_.earliest_start(graph_.hops[index(hop)], queue.top().bytes, t);
    if (std::isfinite(next)) events_[next].hops.push_back(hop);
  }

  void start_what_can(double t) {
    std::vector<std::pair<WaitingTask, int>> first;
    for (const int h : looked_at_) {
      is_looked_at_[index(h)] = 0;
      if (!queues_[index(h)].empty()) first.emplace_back(queues_[index(h)].top(), h);
    }
    looked_at_.clear();
    std::ranges::sort(first, [](const auto& a, const auto& b) { return b.first < a.first; });
    for (const auto& [waiting, h] : first) {
      const Hop& hop = graph_.hops[index(h)];
      if (!timetable_.can_start(hop, waiting.bytes, t)) continue;
      const Task& task = task_of(waiting.task);
      queues_[index(h)].pop();
      ++num_started_;
      const std::size_t sent = schedule_.sends.size();
      const double arrival = timetable_.reserve(hop, task.chunk, waiting.bytes, t, schedule_.sends);
      if (demand_.contribution(task.chunk).reduce)
        marks_.mark(hop, task.op, std::span(schedule_.sends).subspan(sent));
      schedule_.finish_us = std::max(schedule_.finish_us, arrival);
      for (const int onward : task.next) {
        Missing& missing = missing_[index(onward)];
        missing.until_us = std::max(missing.until_us, arrival);
        if (--missing.tasks == 0) events_[missing.until_us].tasks.push_back(onward);
      }
    }
    for (const auto& [waiting, h] : first) look_again(h, t);
  }

  const Topology& topology_;
  const Demand& demand_;
  const TaskGraph& graph_;
  const std::vector<double>& rank_;
  std::uint64_t seed_;
  LinkTimetable timetable_;
  /// What keeps a task from being ready.
  struct Missing {
    int tasks;        ///< it rests on that have not started
    double until_us;  ///< the last of the others arrives
  };
  std::vector<Missing> missing_;
  std::size_t num_started_ = 0;
  SumMarks marks_;
  std::vector<std::priority_queue<WaitingTask>> queues_;  ///< per hop
  /// Tasks that become ready, hops over which what waits may start.
  struct Event {
    std::vector<int> tasks = {};
    std::vector<int> hops = {};
  };
  std::map<double, Event> events_;
  std::vector<int> looked_at_;      ///< hops at this instant
  std::vector<char> is_looked_at_;  ///< per hop
  Schedule schedule_;
};

}  // namespace

int TaskGraph::add(int hop, ChunkId chunk, SendOp op, const std::vector<int>& causes) {
  const int task = static_cast<int>(tasks.size());
  tasks.push_back({hop, chunk, op, static_cast<int>(causes.size())});
  for (const int cause : causes) tasks[index(cause)].next.push_back(task);
  return task;
}

void SumMarks::mark(const Hop& hop, SendOp op, std::span<Send> sends) {
  const bool is_numbered = hop.links.size() > 1;
  const bool is_added_up = std::ranges::count_if(sends, [&](const Send& send) {
                             return topology_.is_gpu(topology_.link(send.link).src);
                           }) > 1;
  if (is_numbered) ++transfer_;
  for (Send& send : sends) {
    const Node& from = topology_.node(topology_.link(send.link).src);
    if (from.kind == NodeKind::switch_ && from.forwarding == Forwarding::store_and_forward) ++transfer_;
    if (is_numbered) send.transfer = transfer_;
    if (topology_.is_gpu(topology_.link(send.link).dst)) {
      send.op = op;
    } else if (is_added_up) {
      send.op = SendOp::reduce;
    }
  }
}

std::vector<double> times_to_go_us(const TaskGraph& graph, const Demand& demand) {
  std::vector<double> to_go_us(graph.tasks.size(), 0);
  for (std::size_t t = graph.tasks.size(); t-- > 0;) {
    const Task& task = graph.tasks[t];
    for (const int onward : task.next) to_go_us[t] = std::max(to_go_us[t], to_go_us[index(onward)]);
    to_go_us[t] += graph.hops[index(task.hop)].duration_us(demand.bytes(task.chunk));
  }
  return to_go_us;
}

Schedule schedule_tasks(const Topology& topology, const Demand& demand, const TaskGraph& graph,
                        const std::vector<double>& rank, std::uint64_t seed, int concurrency) {
  return TaskScheduler(topology, demand, graph, rank, seed, concurrency).run();
}

}  // namespace rondo
