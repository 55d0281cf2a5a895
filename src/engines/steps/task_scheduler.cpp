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
#include "rondo/core/transposition.hpp"
#include "sums_in_switches.hpp"

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

constexpr int kNoLine = -1;

/// The first of what waits for a hop, and the line that it stands in.
struct Candidate {
  WaitingTask waiting;
  int hop;
  int line;
  friend bool operator<(const Candidate& a, const Candidate& b) { return a.waiting < b.waiting; }
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
        marks_(topology),
        sums_in_switches_(topology) {
    queues_.resize(graph.hops.size());
    is_looked_at_.assign(graph.hops.size(), 0);
    find_lone_hops();
    missing_.reserve(graph.tasks.size());
    arrival_us_.resize(graph.tasks.size());
    for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
      const Task& task = graph.tasks[t];
      missing_.push_back({task.rests_on, demand.ready_us(task.chunk)});
      if (task.rests_on == 0) events_[demand.ready_us(task.chunk)].tasks.push_back(static_cast<int>(t));
    }
  }

  /// After run(): per task, the last one first, ranks by which backwards in time what arrives last goes
  /// first.
  std::vector<double> ranks_backwards() const {
    std::vector<double> ranks;
    for (std::size_t t = arrival_us_.size(); t-- > 0;) ranks.push_back(-arrival_us_[t]);
    return ranks;
  }

  Schedule run() {
    while (!events_.empty()) {
      const double t = events_.begin()->first;
      const double until = t + time_slack_us(t);
      while (!events_.empty() && events_.begin()->first <= until) {
        for (const int task : events_.begin()->second.tasks) make_ready(task);
        for (const int hop : events_.begin()->second.hops) look_at(hop);
        for (const int line : events_.begin()->second.lines) open_.push_back(line);
        events_.erase(events_.begin());
      }
      start_what_can(t);
    }
    if (num_started_ != graph_.tasks.size()) refuse_what_waits();
    canonicalise(schedule_);
    return std::move(schedule_);
  }

 private:
  const Task& task_of(int task) const { return graph_.tasks[index(task)]; }

  void make_ready(int task) {
    const std::uint64_t chance =
        mix_bits(seed_ + 0x9e3779b97f4a7c15ULL * static_cast<std::uint64_t>(task + 1));
    const int hop = task_of(task).hop;
    queues_[index(hop)].push({rank_[index(task)], chance, demand_.bytes(task_of(task).chunk), task});
    // Behind another task it waits where that one does.
    if (queues_[index(hop)].top().task == task) look_at(hop);
  }

  /// Those that take their links alone, as all others do that use these links: they can wait in lines.
  void find_lone_hops() {
    std::vector<char> is_shared(topology_.num_links(), 0);
    const bool has_sums = std::ranges::any_of(demand_.contributions(), &Contribution::reduce);
    for (const SharedBandwidth& group : topology_.shared_bandwidth())
      for (const LinkId l : group.links) is_shared[l.index()] = 1;
    for (const Hop& hop : graph_.hops) {
      for (const HopLink& part : hop.links) {
        const bool adds_up_behind = has_sums && topology_.node(topology_.link(part.link).src).stores();
        if (hop.changes || part.share < 1 || adds_up_behind) is_shared[part.link.index()] = 1;
      }
    }
    lines_at_.resize(topology_.num_links());
    for (const Hop& hop : graph_.hops)
      is_lone_.push_back(std::ranges::none_of(
          hop.links, [&](const HopLink& part) { return is_shared[part.link.index()] != 0; }));
  }

  [[noreturn]] void refuse_what_waits() const {
    for (std::size_t h = 0; h < queues_.size(); ++h) {
      if (queues_[h].empty() ||
          std::isfinite(timetable_.earliest_start(graph_.hops[h], queues_[h].top().bytes, 0)))
        continue;
      throw Error(ExitCode::unavailable,
                  "a path that is needed has more bandwidth than the fabric's shared "
                  "bandwidth allows, or is down for ever");
    }
    throw Error(ExitCode::internal, "a task was left waiting: tasks rest on each other");
  }

  void look_at(int hop) {
    if (std::exchange(is_looked_at_[index(hop)], 1) == 0) looked_at_.push_back(hop);
  }

  /// Links only fill up: before the earliest start of what waits for the hop, nothing can start over it.
  void look_again(int hop, double t) {
    const auto& queue = queues_[index(hop)];
    if (queue.empty()) return;
    const double next = timetable_.earliest_start(this->hop(hop), queue.top().bytes, t);
    if (std::isfinite(next)) events_[start_apart_us(queue.top(), hop, next)].hops.push_back(hop);
  }

  /// For parts of sums, at `t` or soon after it.
  double start_apart_us(const WaitingTask& waiting, int h, double t) const {
    const ChunkId chunk = task_of(waiting.task).chunk;
    return demand_.contribution(chunk).reduce
               ? sums_in_switches_.start_apart_us(hop(h), chunk, waiting.bytes, t)
               : t;
  }

  void start_what_can(double t) {
    std::priority_queue<Candidate> first;
    std::vector<int> others;
    for (const int h : looked_at_) {
      is_looked_at_[index(h)] = 0;
      if (queues_[index(h)].empty()) continue;
      first.push({queues_[index(h)].top(), h, kNoLine});
      if (is_lone_[index(h)] == 0) others.push_back(h);
    }
    looked_at_.clear();
    for (const int line : open_) offer_next(line, t, first);
    while (!first.empty()) {
      const auto [waiting, h, line] = first.top();
      first.pop();
      const bool is_stale = queues_[index(h)].empty() || queues_[index(h)].top().task != waiting.task;
      if (!is_stale && timetable_.can_start(hop(h), waiting.bytes, t) && start_apart_us(waiting, h, t) <= t) {
        start(h, t);
        if (is_lone_[index(h)] != 0) stand_in_line(h, t);
      } else if (!is_stale && is_lone_[index(h)] != 0) {
        stand_in_line(h, t);
      }
      if (line != kNoLine) offer_next(line, t, first);
    }
    for (const int line : std::exchange(open_, {})) expect_opening(line);
    for (const int h : others) look_again(h, t);
  }

  void start(int h, double t) {
    const WaitingTask waiting = queues_[index(h)].top();
    const Task& task = task_of(waiting.task);
    queues_[index(h)].pop();
    ++num_started_;
    const std::size_t sent = schedule_.sends.size();
    const double arrival = timetable_.reserve(hop(h), task.chunk, waiting.bytes, t, schedule_.sends);
    arrival_us_[index(waiting.task)] = arrival;
    if (demand_.contribution(task.chunk).reduce) {
      marks_.mark(hop(h), task.op, std::span(schedule_.sends).subspan(sent));
      sums_in_switches_.note(hop(h), task.chunk, waiting.bytes, t);
    }
    schedule_.finish_us = std::max(schedule_.finish_us, arrival);
    for (const int onward : task.next) {
      Missing& missing = missing_[index(onward)];
      missing.until_us = std::max(missing.until_us, arrival);
      if (--missing.tasks == 0) events_[missing.until_us].tasks.push_back(onward);
    }
  }

  /// Before the link that is free last: as many hops may meet there as a GPU has peers, and only the first
  /// one is looked at once it is free.
  void stand_in_line(int h, double t) {
    if (queues_[index(h)].empty()) return;
    const double bytes = queues_[index(h)].top().bytes;
    const HopLink* last = nullptr;
    for (const HopLink& part : hop(h).links) {
      const double start = t + part.offset_us_of(bytes);
      const double free = timetable_.free_from(part.link);
      if (free <= start + time_slack_us(start)) continue;
      t = free - part.offset_us_of(bytes);
      last = &part;
    }
    if (!last) return look_again(h, t);
    const int line = line_before(last->link, last->offset_us_of(bytes));
    lines_[index(line)].hops.push({queues_[index(h)].top(), h, line});
    if (!lines_[index(line)].is_expected) expect_opening(line);
  }

  int line_before(LinkId link, double offset_us) {
    for (const int line : lines_at_[link.index()]) {
      if (lines_[index(line)].offset_us == offset_us) return line;
    }
    lines_at_[link.index()].push_back(static_cast<int>(lines_.size()));
    lines_.push_back({link, offset_us});
    return lines_at_[link.index()].back();
  }

  /// The first of the line leaves it, if its link is free for a start at `t`.
  void offer_next(int line, double t, std::priority_queue<Candidate>& first) {
    Line& l = lines_[index(line)];
    const double start = t + l.offset_us;
    if (l.hops.empty() || timetable_.free_from(l.link) > start + time_slack_us(start)) return;
    first.push(l.hops.top());
    l.hops.pop();
  }

  void expect_opening(int line) {
    Line& l = lines_[index(line)];
    l.is_expected = !l.hops.empty();
    if (l.is_expected) events_[timetable_.free_from(l.link) - l.offset_us].lines.push_back(line);
  }

  const Hop& hop(int h) const { return graph_.hops[index(h)]; }

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
  SumsInSwitches sums_in_switches_;
  std::vector<std::priority_queue<WaitingTask>> queues_;  ///< per hop
  /// Tasks that become ready, hops over which what waits may start, lines whose links are free.
  struct Event {
    std::vector<int> tasks = {};
    std::vector<int> hops = {};
    std::vector<int> lines = {};
  };
  /// Hops that would all take `link` so long after their start.
  struct Line {
    LinkId link;
    double offset_us;
    std::priority_queue<Candidate> hops = {};  ///< also some that start something else first by now
    bool is_expected = false;                  ///< an event waits for the link
  };
  std::map<double, Event> events_;
  std::vector<int> looked_at_;      ///< hops at this instant
  std::vector<char> is_looked_at_;  ///< per hop
  std::vector<char> is_lone_ = {};  ///< per hop
  std::vector<Line> lines_ = {};
  std::vector<std::vector<int>> lines_at_ = {};  ///< per link
  std::vector<int> open_ = {};                   ///< lines whose links are free at this instant
  std::vector<double> arrival_us_ = {};          ///< per task
  Schedule schedule_;
};

/// Backwards in time: hops over the links of the transposed topology, tasks before those that they rest on,
/// the last one first.
TaskGraph reversed_in_time(const Topology& backwards, const TaskGraph& graph) {
  TaskGraph turned;
  for (const Hop& hop : graph.hops) {
    std::vector<LinkId> links;
    for (const HopLink& part : hop.links) links.push_back(part.link);
    std::ranges::reverse(links);
    turned.hops.push_back(slowed(make_hop(backwards, links), hop.divisor));
  }
  const int last = static_cast<int>(graph.tasks.size()) - 1;
  for (int t = last; t >= 0; --t) {
    const Task& task = graph.tasks[index(t)];
    std::vector<int> causes;
    for (const int onward : task.next) causes.push_back(last - onward);
    turned.add(task.hop, task.chunk, task.op, causes);
  }
  return turned;
}

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
    if (topology_.node(topology_.link(send.link).src).stores()) ++transfer_;
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

Schedule schedule_tasks_there_and_back(const Topology& topology, const Demand& demand, const TaskGraph& graph,
                                       const std::vector<double>& rank, std::uint64_t seed, int concurrency) {
  TaskScheduler first(topology, demand, graph, rank, seed, concurrency);
  Schedule once = first.run();
  if (std::ranges::any_of(graph.hops, &Hop::changes)) return once;

  const Topology backwards = transposed(topology);
  const TaskGraph turned = reversed_in_time(backwards, graph);
  const std::vector<double> latest_first = first.ranks_backwards();
  TaskScheduler back(backwards, demand, turned, latest_first, seed, concurrency);
  back.run();
  Schedule again = schedule_tasks(topology, demand, graph, back.ranks_backwards(), seed, concurrency);
  return again.finish_us < once.finish_us ? again : once;
}

}  // namespace rondo
