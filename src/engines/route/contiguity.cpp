#include "contiguity.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "rondo/core/index.hpp"
#include "rondo/core/retiming.hpp"
#include "rondo/model/linear_model.hpp"

namespace rondo {
namespace {

constexpr int kMostTogether = 6;  ///< chunks of a message (TACCL)
constexpr int kMostJoints = 400;  ///< of a program that CBC gets anywhere with
constexpr double kTimes = 100;    ///< of the program: CBC's tolerances are absolute
constexpr double kTogether = 0.5;

class ContiguityProgram {
 public:
  ContiguityProgram(const Topology& topology, const Demand& demand, const TaskGraph& graph,
                    const Schedule& schedule, const std::vector<char>& may_join)
      : topology_(topology),
        demand_(demand),
        graph_(graph),
        bytes_(demand.bytes(ChunkId{0})),
        unit_us_(2 * schedule.finish_us / kTimes),
        start_us_(graph.tasks.size(), 0) {
    find_starts(schedule);
    order_.resize(graph.tasks.size());
    std::iota(order_.begin(), order_.end(), 0);
    std::ranges::stable_sort(order_, {}, [&](int t) { return start_us_[index(t)]; });
    std::vector<std::vector<int>> on_link(topology.num_links()), on_hop(graph.hops.size());
    for (const int t : order_) {
      for (const HopLink& part : hop_of(t).links) on_link[part.link.index()].push_back(t);
      on_hop[index(task(t).hop)].push_back(t);
    }
    for (const auto& tasks : on_link) {
      for (std::size_t i = 1; i < tasks.size(); ++i) neighbours_[{tasks[i - 1], tasks[i]}] += 1;
    }
    links_ = std::move(on_link);
    before_.assign(graph.tasks.size(), -1);
    for (std::size_t h = 0; h < on_hop.size(); ++h) {
      for (std::size_t i = 1; may_join[h] != 0 && i < on_hop[h].size(); ++i) {
        const auto together = neighbours_.find({on_hop[h][i - 1], on_hop[h][i]});
        // Nothing else goes over any of the hop's links in between.
        if (together == neighbours_.end() || together->second != static_cast<int>(graph.hops[h].links.size()))
          continue;
        before_[index(on_hop[h][i])] = on_hop[h][i - 1];
        ++num_joints_;
      }
    }
  }

  int num_joints() const { return num_joints_; }

  std::optional<Schedule> solve(const Solver& milp, const SolveLimits& limits) {
    build();
    std::vector<double> start(static_cast<std::size_t>(model_.num_columns()), 0);
    for (std::size_t t = 0; t < start_us_.size(); ++t) {
      start[index(send_[t])] = start_us_[t] / unit_us_;
      if (apart_[t] >= 0) start[index(apart_[t])] = 1;
      start[index(finish_)] = std::max(
          start[index(finish_)], (start_us_[t] + hop_of(static_cast<int>(t)).duration_us(bytes_)) / unit_us_);
    }
    const bool is_start = max_violation(model_, start) <= kFeasibilityTolerance;
    const Solution solution = milp.solve(model_, limits, is_start ? &start : nullptr);
    if (solution.x.empty()) return std::nullopt;
    return schedule_of(solution.x);
  }

 private:
  const Task& task(int t) const { return graph_.tasks[index(t)]; }
  const Hop& hop_of(int t) const { return graph_.hops[index(task(t).hop)]; }

  void find_starts(const Schedule& schedule) {
    std::map<std::pair<ChunkId, LinkId>, double> entered;
    for (const Send& send : schedule.sends) entered[{send.chunk, send.link}] = send.start_us;
    for (std::size_t t = 0; t < start_us_.size(); ++t) {
      const Hop& hop = hop_of(static_cast<int>(t));
      const HopLink& last = hop.links.back();
      start_us_[t] = entered.at({graph_.tasks[t].chunk, last.link}) - last.offset_us_of(bytes_);
    }
  }

  using Terms = std::map<int, double>;
  void add_row(const Terms& terms, double lower, double upper) {
    const int row = model_.add_row(lower, upper);
    for (const auto& [column, value] : terms) {
      if (value != 0) model_.add_entry(row, column, value);
    }
  }
  /// Adds `factor` times the bytes of the others in the message of `t`, in chunks.
  void add_others(int t, double factor, Terms& terms) const {
    for (const auto& [column, unused] : with_[index(t)]) terms[column] += factor;
  }

  void build() {
    finish_ = model_.add_column(0, kTimes, 1);
    for (std::size_t t = 0; t < start_us_.size(); ++t) {
      send_.push_back(model_.add_column(0, kTimes, 0));
      apart_.push_back(before_[t] >= 0 ? model_.add_column(0, 1, 0, true) : -1);
    }
    with_.resize(start_us_.size());
    for (std::size_t t = 0; t < start_us_.size(); ++t) add_pairs(static_cast<int>(t));
    for (std::size_t t = 0; t < start_us_.size(); ++t) add_arrival(static_cast<int>(t));
    for (std::size_t l = 0; l < links_.size(); ++l) add_link(LinkId(l));
  }

  /// together(a, t) for those that may be in one message: all between them join.
  void add_pairs(int t) {
    Terms joints;
    int a = t;
    for (int k = 1; k < kMostTogether && before_[index(a)] >= 0; ++k) {
      joints[apart_[index(a)]] = 1;
      a = before_[index(a)];
      const int both = model_.add_column(0, 1, 0);
      Terms lower = joints;
      lower[both] = 1;
      add_row(lower, 1, kInfinity);
      for (const auto& [apart, one] : joints) add_row({{both, 1}, {apart, 1}}, -kInfinity, 1);
      with_[index(t)].emplace_back(both, a);
      with_[index(a)].emplace_back(both, t);
    }
    if (before_[index(a)] < 0) return;
    // One more would be too many.
    joints[apart_[index(a)]] = 1;
    add_row(joints, 1, kInfinity);
  }

  void add_arrival(int t) {
    const Hop& hop = hop_of(t);
    const double alone = hop.duration_us(bytes_) / unit_us_;
    const double more = bytes_ * hop.us_per_byte / unit_us_;
    Terms last{{finish_, 1}, {send_[index(t)], -1}};
    add_others(t, -more, last);
    add_row(last, alone, kInfinity);
    for (const int onward : task(t).next) {
      Terms after{{send_[index(onward)], 1}, {send_[index(t)], -1}};
      add_others(t, -more, after);
      add_row(after, alone, kInfinity);
    }
    if (before_[index(t)] < 0) return;
    const int b = before_[index(t)];
    add_row({{send_[index(t)], 1}, {send_[index(b)], -1}, {apart_[index(t)], -kTimes}}, -kInfinity, 0);
    add_row({{send_[index(t)], 1}, {send_[index(b)], -1}}, 0, kInfinity);
  }

  void add_link(LinkId l) {
    const auto part_of = [&](int t) -> const HopLink& {
      return *std::ranges::find(hop_of(t).links, l, &HopLink::link);
    };
    const std::vector<int>& tasks = links_[l.index()];
    for (std::size_t i = 1; i < tasks.size(); ++i) {
      const int a = tasks[i - 1];
      const int b = tasks[i];
      const HopLink& first = part_of(a);
      const double wait =
          (first.offset_us_of(bytes_) + first.occupied_us(bytes_) - part_of(b).offset_us_of(bytes_)) /
          unit_us_;
      Terms row{{send_[index(b)], 1}, {send_[index(a)], -1}};
      add_others(a, -bytes_ * first.us_per_byte / unit_us_, row);
      const bool may_join = before_[index(b)] == a;
      if (may_join) row[apart_[index(b)]] -= kTimes;
      add_row(row, may_join ? wait - kTimes : wait, kInfinity);
    }
  }

  Schedule schedule_of(const std::vector<double>& x) const {
    Schedule schedule;
    std::vector<std::vector<int>> messages;
    std::map<int, std::size_t> message_of;
    for (const int t : order_) {
      const int b = before_[index(t)];
      if (b >= 0 && x[index(apart_[index(t)])] < kTogether) {
        message_of[t] = message_of.at(b);
        messages[message_of.at(b)].push_back(t);
        continue;
      }
      message_of[t] = messages.size();
      messages.push_back({t});
    }
    for (const auto& message : messages) {
      std::vector<ChunkId> chunks;
      double at_us = 0;
      for (const int t : message) {
        chunks.push_back(task(t).chunk);
        at_us = std::max(at_us, x[index(send_[index(t)])] * unit_us_);
      }
      append_sends(topology_, hop_of(message.front()), chunks, bytes_ * static_cast<double>(chunks.size()),
                   at_us, schedule.sends);
    }
    canonicalise(schedule);
    return retimed({topology_, schedule.sends}, topology_, demand_);
  }

  const Topology& topology_;
  const Demand& demand_;
  const TaskGraph& graph_;
  double bytes_;
  double unit_us_;
  std::vector<double> start_us_;
  std::vector<int> order_;
  std::map<std::pair<int, int>, int> neighbours_;  ///< on how many links
  std::vector<std::vector<int>> links_;            ///< tasks by link, in order
  std::vector<int> before_;                        ///< the task that one may join; -1: none
  int num_joints_ = 0;
  LinearModel model_;
  int finish_ = -1;
  std::vector<int> send_;
  std::vector<int> apart_;                              ///< column: 1 where it begins a message; -1: always
  std::vector<std::vector<std::pair<int, int>>> with_;  ///< columns and tasks of what may be in its message
};

}  // namespace

std::optional<Schedule> contiguous(const Topology& topology, const Demand& demand, const TaskGraph& graph,
                                   const Schedule& schedule, const std::vector<char>& may_join,
                                   const Solver& milp, const SolveLimits& limits) {
  if (!topology.has_message_costs() || !demand.uniform_chunk_bytes()) return std::nullopt;
  ContiguityProgram program(topology, demand, graph, schedule, may_join);
  if (program.num_joints() == 0 || program.num_joints() > kMostJoints) return std::nullopt;
  std::optional<Schedule> joined = program.solve(milp, limits);
  if (!joined || joined->finish_us >= schedule.finish_us) return std::nullopt;
  return joined;
}

}  // namespace rondo
