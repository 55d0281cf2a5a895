#include "transfer_network.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <queue>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "rondo/core/error.hpp"
#include "rondo/core/index.hpp"
#include "rondo/core/link_timetable.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/core/time_slack.hpp"
#include "rondo/core/transfers.hpp"

namespace rondo {
namespace {

/// Of what waits for a link, so many are tried: the first may wait for other links further on.
constexpr std::size_t kMostTried = 8;
constexpr double kNever = std::numeric_limits<double>::infinity();

bool is_after(double a_us, double b_us) {
  return a_us > b_us && !times_equal(a_us, b_us);
}

/// A transfer to be started, over its hop forwards or backwards in time.
struct Job {
  const Hop* hop;
  double bytes;
  ChunkId chunk;
  double ready_us;
  int unmet;
  int link;          ///< with whose jobs it waits
  double offset_us;  ///< from its start until it takes that link
};

/// Event-driven list scheduling of jobs.
template <class Onwards>
class ListPass {
 public:
  /// `onwards(job, t, sends, meet)` calls `meet(other, ready_us)` for all that wait for `job`, whose sends
  /// start at `t`.
  ListPass(const Topology& topology, std::vector<Job> jobs, std::span<const double> keys, int concurrency,
           RateAccount::Reading reading, Onwards onwards)
      : jobs_(std::move(jobs)),
        keys_(keys),
        timetable_(topology, concurrency, reading),
        onwards_(std::move(onwards)),
        starts_us_(jobs_.size(), kNever),
        waiting_(topology.num_links()),
        retry_us_(topology.num_links(), kNever),
        is_dirty_(topology.num_links(), 0) {}

  std::vector<double> run() {
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      if (jobs_[i].unmet == 0) events_.push({jobs_[i].ready_us, static_cast<int>(i), -1});
    }
    while (!events_.empty()) {
      const double t = events_.top().t_us;
      while (!events_.empty() && events_.top().t_us <= t + time_slack_us(t)) {
        take(events_.top());
        events_.pop();
      }
      serve(t);
    }
    if (started_ != jobs_.size())
      throw Error(
          ExitCode::unavailable,
          "transfers of several schedules do not go together: links that some need stay down, or sums "
          "wait for each other");
    return std::move(starts_us_);
  }

 private:
  using Waiting = std::set<std::pair<double, int>>;
  struct Event {
    double t_us;
    int job;  ///< is there; -1: a link is to be looked at
    int link;
    bool operator>(const Event& o) const {
      return std::tie(t_us, job, link) > std::tie(o.t_us, o.job, o.link);
    }
  };

  Job& job(int i) { return jobs_[index(i)]; }
  Waiting& waiting(int link) { return waiting_[index(link)]; }
  double& retry_us(int link) { return retry_us_[index(link)]; }

  void take(const Event& event) {
    if (event.job < 0) {
      if (retry_us(event.link) == event.t_us) retry_us(event.link) = kNever;
      look_at(event.link);
      return;
    }
    const int link = job(event.job).link;
    waiting(link).emplace(keys_[index(event.job)], event.job);
    look_at(link);
  }
  void look_at(int link) {
    if (std::exchange(is_dirty_[index(link)], 1) == 0) dirty_.push_back(link);
  }

  void serve(double t) {
    for (const int link : dirty_) offer(link, waiting(link).begin(), kMostTried, t);
    while (!first_.empty()) {
      const auto entry = first_.top();
      first_.pop();
      const int i = entry.second;
      const int link = job(i).link;
      const auto at = waiting(link).find(entry);
      const bool is_offered_twice = at == waiting(link).end();
      if (is_offered_twice || !timetable_.can_start(*job(i).hop, job(i).bytes, t)) continue;
      const auto next = waiting(link).erase(at);
      start(i, t);
      offer(link, next, 1, t);
    }
    for (const int link : dirty_) {
      expect(link, t);
      is_dirty_[index(link)] = 0;
    }
    dirty_.clear();
  }

  void offer(int link, Waiting::const_iterator from, std::size_t count, double t) {
    for (; from != waiting(link).end() && count > 0 && !is_taken(from->second, t); ++from, --count)
      first_.push(*from);
  }

  /// Whether the link that the job waits for is taken when it would come there, as for all others that wait.
  bool is_taken(int i, double t) const {
    const Job& waits = jobs_[index(i)];
    const LinkId link(static_cast<std::size_t>(waits.link));
    const double comes_us = t + waits.offset_us;
    return !timetable_.is_shared(link) && timetable_.free_from(link) > comes_us + time_slack_us(comes_us);
  }

  /// When the link is to be looked at next.
  void expect(int link, double t) {
    double at_us = retry_us(link);
    std::size_t tried = 0;
    for (const auto& [key, i] : waiting(link)) {
      if (tried++ == kMostTried) break;
      if (is_taken(i, t)) {
        at_us = std::min(at_us, timetable_.free_from(LinkId(index(link))) - job(i).offset_us);
        break;
      }
      const double start_us = timetable_.earliest_start(*job(i).hop, job(i).bytes, t);
      if (start_us > t) at_us = std::min(at_us, start_us);
    }
    if (!std::isfinite(at_us) || at_us >= retry_us(link) || at_us <= t) return;
    retry_us(link) = at_us;
    events_.push({at_us, -1, link});
  }

  void start(int i, double t) {
    ++started_;
    starts_us_[index(i)] = t;
    sends_.clear();
    timetable_.reserve(*job(i).hop, job(i).chunk, job(i).bytes, t, sends_);
    onwards_(i, t, sends_, [&](int other, double ready_us) {
      job(other).ready_us = std::max(job(other).ready_us, ready_us);
      if (--job(other).unmet == 0) events_.push({job(other).ready_us, other, -1});
    });
  }

  std::vector<Job> jobs_;
  std::span<const double> keys_;
  LinkTimetable timetable_;
  Onwards onwards_;
  std::vector<double> starts_us_;
  std::vector<Waiting> waiting_;  ///< per link: keys and jobs
  std::vector<double> retry_us_;  ///< per link: when it is looked at next
  std::vector<int> dirty_;        ///< links to be looked at now
  std::vector<char> is_dirty_;    ///< per link
  std::priority_queue<std::pair<double, int>, std::vector<std::pair<double, int>>, std::greater<>> first_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::size_t started_ = 0;
  std::vector<Send> sends_;  ///< of the job that starts
};

/// Over one of its links, from the start of a transfer; no bandwidth changes.
double arrival_us(const Topology& topology, const TransferShape& shape, const HopLink& part) {
  return part.offset_us_of(shape.bytes) + part.occupied_us(shape.bytes) + topology.link(part.link).latency_us;
}

/// From the start of a transfer to its last arrival.
double duration_us(const Topology& topology, const TransferShape& shape) {
  double us = 0;
  for (const HopLink& part : shape.hop.links) us = std::max(us, arrival_us(topology, shape, part));
  return us;
}

Hop backwards(const TransferShape& shape, double duration_us) {
  Hop hop = shape.hop;
  for (HopLink& part : hop.links) {
    part.offset_us =
        std::max(0.0, duration_us - part.offset_us_of(shape.bytes) - part.occupied_us(shape.bytes));
    part.offset_us_per_byte = 0;
  }
  return hop;
}

}  // namespace

TransferNetwork::TransferNetwork(const TimedSends& before, const Topology& topology, const Demand& demand)
    : before_(before), topology_(topology), demand_(demand) {
  for (TransferSends& transfer : transfers_by_start(before.topology, before.sends)) {
    Item& item = items_.emplace_back();
    item.shape = shape_of(transfer, before, topology, demand);
    item.transfer = std::move(transfer);
  }
  find_dependences();
}

void TransferNetwork::find_dependences() {
  std::unordered_map<std::uint64_t, Place> places;
  for (std::size_t i = 0; i < items_.size(); ++i) {
    const auto& sends = items_[i].transfer.sends;
    for (std::size_t k = 0; k < sends.size(); ++k) {
      const Send& send = before_.sends[index(sends[k])];
      const Link& link = topology_.link(before_.link_of(send));
      const Passage passage{static_cast<int>(i), static_cast<int>(k), 0};
      if (topology_.is_gpu(link.dst)) {
        auto& in = places[key_of(send.chunk, topology_.gpu_of(link.dst))].in;
        in.push_back(passage);
        in.back().at_us = send.arrival_us;
      }
      if (topology_.is_gpu(link.src)) {
        const GpuId gpu = topology_.gpu_of(link.src);
        auto& out = places[key_of(send.chunk, gpu)].out;
        out.push_back(passage);
        out.back().at_us = send.start_us;
        items_[i].ready_us =
            std::max(items_[i].ready_us, own_ready_us(demand_.contribution(send.chunk), gpu));
      }
    }
  }
  for (auto& [key, place] : places) {
    const Contribution& part = demand_.contribution(ChunkId(key / topology_.num_gpus()));
    if (part.reduce) {
      order_sum(place);
    } else if (own_ready_us(part, GpuId(key % topology_.num_gpus())) < 0) {
      order_copies(place);
    }
  }
}

/// What leaves rests on the first arrival.
void TransferNetwork::order_copies(const Place& place) {
  if (place.in.empty()) return;
  const Passage& first = *std::ranges::min_element(place.in, {}, &Passage::at_us);
  for (const Passage& out : place.out) {
    if (!is_after(first.at_us, out.at_us)) rest(out.item, first);
  }
}

void TransferNetwork::order_sum(const Place& place) {
  for (const Passage& out : place.out) {
    for (const Passage& in : place.in) {
      if (!is_after(in.at_us, out.at_us)) {
        rest(out.item, in);
      } else if (is_after(start_of(in), out.at_us)) {
        // What set out at the same time or before stays a matter of luck, or two could wait for each other.
        start_after(in.item, out.item);
      }
    }
  }
  for (const Passage& copy : place.in) {
    if (op_of(copy) != SendOp::copy) continue;
    // What is added to it may not be there before: that it sets out no earlier mostly sees to that.
    for (const Passage& sum : place.in) {
      if (op_of(sum) == SendOp::reduce && is_after(sum.at_us, copy.at_us) &&
          !is_after(start_of(copy), start_of(sum)))
        start_after(sum.item, copy.item);
    }
  }
}

SendOp TransferNetwork::op_of(const Passage& passage) const {
  return before_.sends[index(items_[index(passage.item)].transfer.sends[index(passage.send)])].op;
}

void TransferNetwork::start_after(int item, int first) {
  items_[index(first)].onward.push_back({item, kStart});
  ++items_[index(item)].unmet;
}

void TransferNetwork::rest(int item, const Passage& on) {
  if (item == on.item) return;
  Item& cause = items_[index(on.item)];
  const LinkId link = before_.link_of(before_.sends[index(cause.transfer.sends[index(on.send)])]);
  const auto at = std::ranges::find(cause.shape.hop.links, link, &HopLink::link);
  cause.onward.push_back({item, static_cast<int>(at - cause.shape.hop.links.begin())});
  ++items_[index(item)].unmet;
}

Schedule TransferNetwork::schedule_at(std::span<const double> starts_us, int concurrency) const {
  std::vector<std::size_t> by_start(items_.size());
  std::iota(by_start.begin(), by_start.end(), std::size_t{0});
  std::ranges::stable_sort(by_start, {}, [&](std::size_t i) { return starts_us[i]; });
  LinkTimetable timetable(topology_, concurrency);
  std::int32_t next_number = next_transfer_number(before_.sends);
  Schedule schedule;
  schedule.sends.reserve(before_.sends.size());
  for (const std::size_t i : by_start) {
    const Item& item = items_[i];
    append_transfer(item.transfer, item.shape, before_, starts_us[i], timetable, next_number, schedule.sends);
  }
  for (const Send& send : schedule.sends) schedule.finish_us = std::max(schedule.finish_us, send.arrival_us);
  canonicalise(schedule);
  return schedule;
}

std::vector<double> list_starts_us(const TransferNetwork& network, std::span<const double> keys,
                                   int concurrency) {
  const auto& items = network.items();
  std::vector<Job> jobs;
  for (const TransferNetwork::Item& item : items) {
    const Hop& hop = item.shape.hop;
    jobs.push_back({&hop, item.shape.bytes, item.shape.chunks.front(), item.ready_us, item.unmet,
                    hop.links.front().link.value, 0});
  }
  const auto onwards = [&](int i, double t, std::span<const Send> sends, const auto& meet) {
    for (const auto& [other, link] : items[index(i)].onward)
      meet(other, link == TransferNetwork::kStart ? t : sends[index(link)].arrival_us);
  };
  return ListPass(network.topology(), std::move(jobs), keys, concurrency, RateAccount::Reading::forwards,
                  onwards)
      .run();
}

BackwardLists::BackwardLists(const TransferNetwork& network)
    : network_(network), before_(network.items().size()) {
  const Topology& topology = network.topology();
  const auto& items = network.items();
  for (const TransferNetwork::Item& item : items) {
    durations_us_.push_back(duration_us(topology, item.shape));
    hops_.push_back(backwards(item.shape, durations_us_.back()));
  }
  for (std::size_t i = 0; i < items.size(); ++i) {
    const TransferShape& shape = items[i].shape;
    for (const auto& [other, link] : items[i].onward) {
      const double arrival =
          link == TransferNetwork::kStart ? 0 : arrival_us(topology, shape, shape.hop.links[index(link)]);
      before_[index(other)].push_back(
          {static_cast<int>(i), durations_us_[index(other)] + arrival - durations_us_[i]});
    }
  }
}

std::vector<double> BackwardLists::tails_us(std::span<const double> keys, int concurrency) const {
  const auto& items = network_.items();
  std::vector<Job> jobs;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const HopLink& first = hops_[i].links.back();
    jobs.push_back({&hops_[i], items[i].shape.bytes, items[i].shape.chunks.front(), 0,
                    static_cast<int>(items[i].onward.size()), first.link.value, first.offset_us});
  }
  const auto onwards = [&](int i, double t, std::span<const Send>, const auto& meet) {
    for (const Before& other : before_[index(i)]) meet(other.item, t + other.lag_us);
  };
  std::vector<double> tails = ListPass(network_.topology(), std::move(jobs), keys, concurrency,
                                       RateAccount::Reading::backwards, onwards)
                                  .run();
  for (std::size_t i = 0; i < tails.size(); ++i) tails[i] += durations_us_[i];
  return tails;
}

double BackwardLists::finish_us(std::span<const double> starts_us) const {
  double us = 0;
  for (std::size_t i = 0; i < starts_us.size(); ++i) us = std::max(us, starts_us[i] + durations_us_[i]);
  return us;
}

}  // namespace rondo
