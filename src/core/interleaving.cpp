#include "rondo/core/interleaving.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "rondo/core/error.hpp"
#include "rondo/core/index.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/core/time_slack.hpp"
#include "rondo/core/transfers.hpp"
#include "timed_transfers.hpp"

namespace rondo {
namespace {

/// Of what waits for a link, so many are tried: the first may wait for other links further on.
constexpr std::size_t kMostTried = 8;
constexpr double kNever = std::numeric_limits<double>::infinity();

class Interleaving {
 public:
  Interleaving(const TimedSends& before, const Topology& topology, const Demand& demand,
               std::span<const double> keys, int concurrency)
      : before_(before), topology_(topology), demand_(demand), timetable_(topology, concurrency) {
    for (TransferSends& transfer : transfers_by_start(before.topology, before.sends)) {
      Item& item = items_.emplace_back();
      item.shape = shape_of(transfer, before, topology, demand);
      item.key = keys[index(transfer.sends.front())];
      item.transfer = std::move(transfer);
    }
    waiting_.resize(topology.num_links());
    retry_us_.assign(topology.num_links(), kNever);
    find_dependences();
  }

  Schedule run() {
    for (std::size_t i = 0; i < items_.size(); ++i) {
      if (items_[i].unmet == 0) events_.push({items_[i].ready_us, static_cast<int>(i), -1});
    }
    while (!events_.empty()) {
      const double t = events_.top().t_us;
      while (!events_.empty() && events_.top().t_us <= t + time_slack_us(t)) {
        take(events_.top());
        events_.pop();
      }
      serve(t);
    }
    if (started_ != items_.size())
      throw Error(
          ExitCode::unavailable,
          "transfers of several schedules do not go together: links that some need stay down, or sums "
          "wait for each other");
    canonicalise(schedule_);
    return std::move(schedule_);
  }

 private:
  struct Item {
    TransferSends transfer = {};
    TransferShape shape = {};
    double key = 0;
    double ready_us = 0;
    int unmet = 0;
    std::vector<int> after_start = {};    ///< items that may start once this one has
    std::vector<int> after_arrival = {};  ///< items that wait for one of its arrivals
    std::vector<int> arrival_send = {};   ///< which: its position in transfer.sends
  };
  struct Event {
    double t_us;
    int item;  ///< is there; -1: a link is to be looked at
    int link;
    bool operator>(const Event& o) const {
      return std::tie(t_us, item, link) > std::tie(o.t_us, o.item, o.link);
    }
  };
  /// What comes to a GPU or leaves it, of one chunk.
  struct Passage {
    int item;
    int send;  ///< position in its sends
    double at_us;
  };
  struct Place {
    std::vector<Passage> in = {};
    std::vector<Passage> out = {};
  };

  static bool is_after(double a_us, double b_us) { return a_us > b_us && !times_equal(a_us, b_us); }

  std::uint64_t key_of(ChunkId chunk, GpuId gpu) const {
    return static_cast<std::uint64_t>(chunk.index()) * topology_.num_gpus() + gpu.index();
  }

  void find_dependences() {
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
  void order_copies(const Place& place) {
    if (place.in.empty()) return;
    const Passage& first = *std::ranges::min_element(place.in, {}, &Passage::at_us);
    for (const Passage& out : place.out) {
      if (!is_after(first.at_us, out.at_us)) rest(out.item, first);
    }
  }

  void order_sum(const Place& place) {
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

  double start_of(const Passage& passage) const { return items_[index(passage.item)].transfer.start_us; }
  SendOp op_of(const Passage& passage) const {
    return before_.sends[index(items_[index(passage.item)].transfer.sends[index(passage.send)])].op;
  }

  void start_after(int item, int first) {
    items_[index(first)].after_start.push_back(item);
    ++items_[index(item)].unmet;
  }

  void rest(int item, const Passage& on) {
    if (item == on.item) return;
    items_[index(on.item)].after_arrival.push_back(item);
    items_[index(on.item)].arrival_send.push_back(on.send);
    ++items_[index(item)].unmet;
  }

  void take(const Event& event) {
    if (event.item < 0) {
      if (retry_us_[index(event.link)] == event.t_us) retry_us_[index(event.link)] = kNever;
      dirty_.insert(event.link);
      return;
    }
    const Item& item = items_[index(event.item)];
    const int link = item.shape.hop.links.front().link.value;
    waiting_[index(link)].emplace(item.key, event.item);
    dirty_.insert(link);
  }

  void serve(double t) {
    std::set<std::pair<double, int>> order;
    const auto offer = [&](int link) {
      std::size_t tried = 0;
      for (const auto& entry : waiting_[index(link)]) {
        if (tried++ == kMostTried) return;
        order.insert(entry);
      }
    };
    for (const int link : dirty_) offer(link);
    dirty_.clear();
    std::vector<int> failed;
    while (!order.empty()) {
      const auto entry = *order.begin();
      order.erase(order.begin());
      Item& item = items_[index(entry.second)];
      const int link = item.shape.hop.links.front().link.value;
      if (!timetable_.can_start(item.shape.hop, item.shape.bytes, t)) {
        failed.push_back(entry.second);
        continue;
      }
      waiting_[index(link)].erase(entry);
      start(item, t);
      const auto next = waiting_[index(link)].upper_bound(entry);
      if (next != waiting_[index(link)].end()) order.insert(*next);
      failed.push_back(-1 - link);
    }
    for (const int f : failed) f < 0 ? retry_first(-1 - f, t) : retry(f, t);
  }

  /// Others may have what they need once the one that has started has passed.
  void retry_first(int link, double t) {
    std::size_t tried = 0;
    for (const auto& entry : waiting_[index(link)]) {
      if (tried++ == kMostTried) return;
      retry(entry.second, t);
    }
  }

  void retry(int i, double t) {
    const Item& item = items_[index(i)];
    const int link = item.shape.hop.links.front().link.value;
    const double at_us = timetable_.earliest_start(item.shape.hop, item.shape.bytes, t);
    if (!std::isfinite(at_us) || at_us >= retry_us_[index(link)] || at_us <= t) return;
    retry_us_[index(link)] = at_us;
    events_.push({at_us, -1, link});
  }

  void start(Item& item, double t) {
    ++started_;
    const std::size_t first = schedule_.sends.size();
    append_transfer(item.transfer, item.shape, before_, t, timetable_, next_number_, schedule_.sends);
    for (std::size_t s = first; s < schedule_.sends.size(); ++s)
      schedule_.finish_us = std::max(schedule_.finish_us, schedule_.sends[s].arrival_us);
    for (const int next : item.after_start) met(next, t);
    for (std::size_t k = 0; k < item.after_arrival.size(); ++k)
      met(item.after_arrival[k], schedule_.sends[first + index(item.arrival_send[k])].arrival_us);
  }

  void met(int i, double at_us) {
    Item& item = items_[index(i)];
    item.ready_us = std::max(item.ready_us, at_us);
    if (--item.unmet == 0) events_.push({item.ready_us, i, -1});
  }

  const TimedSends& before_;
  const Topology& topology_;
  const Demand& demand_;
  LinkTimetable timetable_;
  std::int32_t next_number_ = next_transfer_number(before_.sends);
  std::vector<Item> items_;
  std::vector<std::set<std::pair<double, int>>> waiting_;  ///< per link that a transfer begins with
  std::vector<double> retry_us_;                           ///< per link: when it is looked at next
  std::set<int> dirty_;                                    ///< links to be looked at now
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::size_t started_ = 0;
  Schedule schedule_;
};

}  // namespace

Schedule interleaved(const TimedSends& before, const Topology& topology, const Demand& demand,
                     std::span<const double> keys, int concurrency) {
  return Interleaving(before, topology, demand, keys, concurrency).run();
}

}  // namespace rondo
