#include "tree_pipeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <queue>
#include <tuple>
#include <utility>

#include "rondo/core/error.hpp"
#include "rondo/core/hops.hpp"
#include "rondo/core/index.hpp"
#include "rondo/core/link_timetable.hpp"
#include "rondo/core/units.hpp"
#include "rondo/flows/link_rows.hpp"

namespace rondo {
namespace {

/// Each fills some link.
constexpr int kMostTurnsOfFilling = 64;

/// A transfer of a tree, which all chunks of the tree take.
struct Stage {
  int hop = 0;
  double to_go_us = 0;  ///< from its start until the chunk is everywhere behind it
  /// What begins where it ends: the stage, and behind which of its links.
  struct Next {
    int stage;
    std::size_t link;
  };
  std::vector<Next> next = {};
};

struct WaitingChunk {
  double due_us;  ///< when it had best start
  int stage;
  ChunkId chunk;
  friend bool operator<(const WaitingChunk& a, const WaitingChunk& b) {
    return std::tie(b.due_us, b.chunk, b.stage) < std::tie(a.due_us, a.chunk, a.stage);
  }
};

/// A chunk arrives where a stage begins, or (no chunk) a hop may have room again.
struct PipelineEvent {
  double us;
  int stage_or_hop;
  ChunkId chunk;
  friend bool operator<(const PipelineEvent& a, const PipelineEvent& b) {
    return std::tie(b.us, b.chunk, b.stage_or_hop) < std::tie(a.us, a.chunk, a.stage_or_hop);
  }
};

class Pipeline {
 public:
  Pipeline(const Topology& topology, const Demand& demand, const std::vector<OutTree>& trees, int concurrency)
      : topology_(topology),
        bytes_(demand.bytes(ChunkId{0})),
        concurrency_(concurrency),
        timetable_(topology, concurrency) {
    for (const OutTree& tree : trees) add(tree);
    queues_.resize(hops_.size());
    is_looked_at_.assign(hops_.size(), 0);
    looks_us_.assign(hops_.size(), -1);
    free_us_.assign(hops_.size(), 0);
  }

  std::optional<Schedule> run(const Demand& demand, const std::vector<std::size_t>& tree_of, double busy_us,
                              std::optional<double> finish_us, HopRates rates, const Deadline& deadline) {
    std::vector<double> of_tree(roots_.size(), 0);
    for (const std::size_t tree : tree_of) ++of_tree[tree];
    has_own_rates_ = rates == HopRates::of_their_trees;
    if (has_own_rates_) busy_us = slow_hops(of_tree);
    std::vector<double> depth_us(roots_.size(), 0);
    for (std::size_t tree = 0; tree < roots_.size(); ++tree) {
      find_times_to_go(tree);
      for (const int stage : roots_[tree])
        depth_us[tree] = std::max(depth_us[tree], stages_[index(stage)].to_go_us);
    }
    std::vector<double> begun(roots_.size(), 0);
    for (std::size_t c = 0; c < tree_of.size(); ++c) {
      const std::size_t tree = tree_of[c];
      const double share = ++begun[tree] / of_tree[tree];
      due_us_.push_back(finish_us ? depth_us[tree] + (*finish_us - depth_us[tree]) * share : busy_us * share);
      for (const int stage : roots_[tree]) events_.push({demand.ready_us(ChunkId(c)), stage, ChunkId(c)});
    }
    std::size_t turns = 0;
    while (!events_.empty()) {
      if (++turns % 1024 == 0 && deadline.is_over()) return std::nullopt;
      const double t = events_.top().us;
      const double until = t + time_slack_us(t);
      while (!events_.empty() && events_.top().us <= until) {
        const PipelineEvent event = events_.top();
        events_.pop();
        if (event.chunk.valid()) {
          arrive(event);
        } else if (looks_us_[index(event.stage_or_hop)] == event.us) {
          looks_us_[index(event.stage_or_hop)] = -1;
          look_at(event.stage_or_hop);
        }
      }
      start_what_can(t);
    }
    canonicalise(schedule_);
    return std::move(schedule_);
  }

 private:
  void add(const OutTree& tree) {
    const std::size_t first = stages_.size();
    first_stage_.push_back(first);
    roots_.emplace_back();
    for (const TreeTransfer& transfer : tree.transfers) {
      const int stage = static_cast<int>(stages_.size());
      const auto [known, is_new] =
          hop_of_.try_emplace({transfer.links, transfer.parents}, static_cast<int>(hops_.size()));
      if (is_new) hops_.push_back(make_hop(topology_, transfer.links, transfer.parents));
      stages_.push_back({.hop = known->second});
      if (transfer.from < 0) {
        roots_.back().push_back(stage);
      } else {
        stages_[first + index(transfer.from)].next.push_back({stage, index(transfer.from_link)});
      }
    }
  }

  /// Per tree the numbers of its first stage and of the first one after it.
  std::pair<std::size_t, std::size_t> stages_of(std::size_t tree) const {
    return {first_stage_[tree], tree + 1 < first_stage_.size() ? first_stage_[tree + 1] : stages_.size()};
  }

  /// Gives every hop at least the rate at which all of its chunks pass in the time that the busiest link or
  /// group takes for its own, and shares out what links have left; returns that time.
  double slow_hops(const std::vector<double>& chunks_of_tree) {
    std::vector<double> chunks(hops_.size(), 0);
    for (std::size_t tree = 0; tree < roots_.size(); ++tree) {
      const auto [first, end] = stages_of(tree);
      for (std::size_t s = first; s < end; ++s) chunks[index(stages_[s].hop)] += chunks_of_tree[tree];
    }
    std::vector<double> of_link(topology_.num_links(), 0);
    for (std::size_t h = 0; h < hops_.size(); ++h)
      for (const HopLink& part : hops_[h].links) of_link[part.link.index()] += chunks[h];
    double busy_us = 0;
    for (std::size_t l = 0; l < of_link.size(); ++l)
      busy_us = std::max(busy_us, transmission_us(of_link[l] * bytes_, topology_.links()[l].bandwidth_GBps));
    for (const SharedBandwidth& group : topology_.shared_bandwidth()) {
      double of_group = 0;
      for (const LinkId l : group.links) of_group += of_link[l.index()];
      busy_us = std::max(busy_us, transmission_us(of_group * bytes_, group.bandwidth_GBps));
    }
    check_transfers_at_a_time(chunks);
    std::vector<double> part_of_rate(hops_.size(), 0);
    for (std::size_t h = 0; h < hops_.size(); ++h)
      part_of_rate[h] = std::min(1.0, chunks[h] * slowest_us(hops_[h]) / busy_us);
    fill_links(part_of_rate);
    for (std::size_t h = 0; h < hops_.size(); ++h)
      if (chunks[h] > 0) hops_[h] = slowed(hops_[h], 1 / part_of_rate[h]);
    return busy_us;
  }

  double slowest_us(const Hop& hop) const {
    double us = 0;
    for (const HopLink& part : hop.links) us = std::max(us, part.occupied_us(bytes_));
    return us;
  }

  /// Raises the rates of all hops together, each until some link or group that it takes is full.
  /// `part_of_rate`: per hop, of the rate at which it has its links alone; 0: it carries nothing.
  void fill_links(std::vector<double>& part_of_rate) const {
    const LinkRows rows(topology_, bytes_);
    std::vector<double> left(rows.count(), 1 - kWholeLink);
    // What a row is used more where hops have their whole rate, and where all send a chunk in a us.
    const auto use = [&](std::vector<double>& of_rows, std::size_t h, double part) {
      for (const HopLink& link : hops_[h].links)
        for (const int row : rows.of(link.link))
          of_rows[index(row)] += part * rows.us(row) / link.occupied_us(bytes_);
    };
    std::vector<char> rises(hops_.size(), 0);
    std::vector<double> used(rows.count(), 0);
    for (std::size_t h = 0; h < hops_.size(); ++h) {
      rises[h] = part_of_rate[h] > 0 && part_of_rate[h] < 1;
      use(used, h, part_of_rate[h]);
    }
    for (std::size_t row = 0; row < left.size(); ++row) left[row] -= used[row];
    for (int turn = 0; turn < kMostTurnsOfFilling; ++turn) {
      std::vector<double> growth(rows.count(), 0);
      double step = std::numeric_limits<double>::infinity();
      for (std::size_t h = 0; h < hops_.size(); ++h) {
        for (const HopLink& link : hops_[h].links)
          for (const int row : rows.of(link.link)) rises[h] = rises[h] && left[index(row)] > kWholeLink;
        if (!rises[h]) continue;
        use(growth, h, slowest_us(hops_[h]));
        step = std::min(step, (1 - part_of_rate[h]) / slowest_us(hops_[h]));
      }
      for (std::size_t row = 0; row < left.size(); ++row)
        if (growth[row] > 0) step = std::min(step, left[row] / growth[row]);
      if (!std::isfinite(step)) return;
      for (std::size_t row = 0; row < left.size(); ++row) left[row] -= step * growth[row];
      for (std::size_t h = 0; h < hops_.size(); ++h) {
        if (!rises[h]) continue;
        part_of_rate[h] = std::min(1.0, part_of_rate[h] + step * slowest_us(hops_[h]));
        rises[h] = part_of_rate[h] < 1 - kWholeLink;
      }
    }
  }

  void check_transfers_at_a_time(const std::vector<double>& chunks) const {
    if (concurrency_ == kAnyConcurrency) return;
    std::vector<int> hops(topology_.num_links(), 0);
    for (std::size_t h = 0; h < hops_.size(); ++h) {
      for (const HopLink& part : hops_[h].links) {
        const Link& link = topology_.link(part.link);
        if (chunks[h] == 0 || !(topology_.is_gpu(link.src) || topology_.is_gpu(link.dst))) continue;
        if (++hops[part.link.index()] > concurrency_) {
          throw Error(
              ExitCode::unavailable,
              fmt::format("engine rooted: at rates of their own, more than {} transfers are on link {} "
                          "at a time; raise --concurrency or use another policy, such as even",
                          concurrency_, part.link.index()));
        }
      }
    }
  }

  void find_times_to_go(std::size_t tree) {
    const auto [first, end] = stages_of(tree);
    for (std::size_t s = end; s-- > first;) {
      Stage& stage = stages_[s];
      const Hop& hop = hops_[index(stage.hop)];
      for (const HopLink& part : hop.links) stage.to_go_us = std::max(stage.to_go_us, arrives_after_us(part));
      for (const Stage::Next& next : stage.next) {
        stage.to_go_us = std::max(
            stage.to_go_us, arrives_after_us(hop.links[next.link]) + stages_[index(next.stage)].to_go_us);
      }
    }
  }

  double arrives_after_us(const HopLink& part) const {
    return part.offset_us_of(bytes_) + part.occupied_us(bytes_) + topology_.link(part.link).latency_us;
  }

  void arrive(const PipelineEvent& event) {
    const Stage& stage = stages_[index(event.stage_or_hop)];
    queues_[index(stage.hop)].push(
        {due_us_[event.chunk.index()] - stage.to_go_us, event.stage_or_hop, event.chunk});
    look_at(stage.hop);
  }

  void look_at(int hop) {
    if (std::exchange(is_looked_at_[index(hop)], 1) == 0) looked_at_.push_back(hop);
  }

  /// Links only fill up: before the earliest start of what waits for the hop, nothing can start over it.
  void look_again(int hop, double t) {
    if (queues_[index(hop)].empty()) return;
    const double next =
        timetable_.earliest_start(hops_[index(hop)], bytes_, std::max(t, free_us_[index(hop)]));
    double& looks = looks_us_[index(hop)];
    if (looks >= 0 && looks <= next) return;
    looks = next;
    events_.push({next, hop, ChunkId{}});
  }

  void start_what_can(double t) {
    first_.clear();
    for (const int h : looked_at_) {
      is_looked_at_[index(h)] = 0;
      if (!queues_[index(h)].empty()) first_.emplace_back(queues_[index(h)].top(), h);
    }
    looked_at_.clear();
    std::ranges::sort(first_, [](const auto& a, const auto& b) { return b.first < a.first; });
    for (const auto& [waiting, h] : first_) {
      const Hop& hop = hops_[index(h)];
      if (free_us_[index(h)] > t + time_slack_us(t) || !timetable_.can_start(hop, bytes_, t)) continue;
      queues_[index(h)].pop();
      const std::size_t sent = schedule_.sends.size();
      timetable_.reserve(hop, waiting.chunk, bytes_, t, schedule_.sends);
      if (has_own_rates_) free_us_[index(h)] = t + hop.links.front().occupied_us(bytes_);
      for (std::size_t i = sent; i < schedule_.sends.size(); ++i)
        schedule_.finish_us = std::max(schedule_.finish_us, schedule_.sends[i].arrival_us);
      for (const Stage::Next& next : stages_[index(waiting.stage)].next)
        events_.push({schedule_.sends[sent + next.link].arrival_us, next.stage, waiting.chunk});
    }
    for (const auto& [waiting, h] : first_) look_again(h, t);
  }

  const Topology& topology_;
  double bytes_;  ///< of a chunk
  int concurrency_;
  LinkTimetable timetable_;
  std::vector<Hop> hops_;
  std::map<std::pair<std::vector<LinkId>, std::vector<int>>, int> hop_of_;
  std::vector<Stage> stages_;
  std::vector<std::size_t> first_stage_;                   ///< per tree
  std::vector<std::vector<int>> roots_;                    ///< per tree, the stages that begin at the root
  std::vector<double> due_us_;                             ///< per chunk, to be everywhere
  std::vector<std::priority_queue<WaitingChunk>> queues_;  ///< per hop
  std::priority_queue<PipelineEvent> events_;
  std::vector<int> looked_at_;  ///< hops at this instant
  std::vector<char> is_looked_at_;
  std::vector<double> looks_us_;  ///< per hop, when it is looked at again; -1: not
  bool has_own_rates_ = false;
  std::vector<double> free_us_;  ///< per hop; where hops have their own rates, they carry one chunk at a time
  std::vector<std::pair<WaitingChunk, int>> first_;
  Schedule schedule_;
};

}  // namespace

std::optional<Schedule> schedule_pipelined(const Topology& topology, const Demand& demand,
                                           const std::vector<OutTree>& trees,
                                           const std::vector<std::size_t>& tree_of, double busy_us,
                                           std::optional<double> finish_us, HopRates rates, int concurrency,
                                           const Deadline& deadline) {
  return Pipeline(topology, demand, trees, concurrency)
      .run(demand, tree_of, busy_us, finish_us, rates, deadline);
}

}  // namespace rondo
