#include "rondo/engines/exchange.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <queue>
#include <set>
#include <tuple>

#include "rondo/core/index.hpp"
#include "rondo/core/link_timetable.hpp"
#include "sums_in_switches.hpp"
#include "task_scheduler.hpp"
#include "times_apart.hpp"

namespace rondo {
namespace {

constexpr double kNotAtAll = std::numeric_limits<double>::infinity();

/// A chunk at a member.
struct Held {
  double ready_us = 0;          ///< it holds its group's sum of the level before
  double first_us = kNotAtAll;  ///< something else arrives for the first time
  double last_us = 0;           ///< the last arrival
  double last_start_us = -1;    ///< of what it sends
  std::set<int> missing = {};   ///< groups whose sums it lacks
  bool is_complete = false;
};

/// A message that may be sent.
struct PossibleSend {
  double arrival_us;  ///< no earlier than this
  SendOp op;
  int distance;  ///< of the groups, upwards and around
  int shift;     ///< of the places in their groups
  int chunk;
  int from;
  int to;
  int hop;
  bool in_line = false;  ///< it stands for all that wait in the hop's line
  auto order() const { return std::tie(op, distance, shift, chunk, from, hop); }
  friend bool operator<(const PossibleSend& a, const PossibleSend& b) {
    return std::tuple_cat(std::tie(b.arrival_us), b.order()) <
           std::tuple_cat(std::tie(a.arrival_us), a.order());
  }
};

/// Messages that wait for one hop alone, which has room for none of them before `start_us`: one of them goes
/// at a time, so that the others are not looked at again for each.
struct Line {
  struct InOrder {
    bool operator()(const PossibleSend& a, const PossibleSend& b) const { return a.order() < b.order(); }
  };
  double start_us = 0;
  std::set<PossibleSend, InOrder> waiting = {};
  std::optional<PossibleSend> announced = {};

  bool is_announced(const PossibleSend& offer) const {
    return announced && announced->arrival_us == offer.arrival_us && announced->order() == offer.order();
  }
};

class Exchange {
 public:
  explicit Exchange(const ExchangeProblem& problem)
      : problem_(problem),
        timetable_(problem.topology, problem.concurrency),
        marks_(problem.topology),
        sums_in_switches_(problem.topology),
        count_(static_cast<int>(problem.members.front().size())),
        lines_(problem.hops.hops().size()) {
    for (const std::vector<GpuId>& members : problem.members) {
      std::vector<int>& position = positions_.emplace_back(problem.topology.num_gpus(), -1);
      for (int m = 0; m < count_; ++m) position[members[index(m)].index()] = m;
    }
    held_.resize(problem.demand.num_chunks() * index(count_));
    for (std::size_t i = 0; i < held_.size(); ++i)
      held_[i].ready_us = problem.demand.ready_us(ChunkId(i / index(count_)));
  }

  std::optional<Schedule> run(const std::vector<int>& radices) {
    if (problem_.in_pairs) {
      if (!share_in_pairs()) return std::nullopt;
      size_ = 2;
    }
    for (std::size_t level = 0; level < radices.size(); ++level) {
      if (!run_level(radices[level], level + 1 == radices.size())) return std::nullopt;
      size_ *= radices[level];
    }
    for (const Held& held : held_) schedule_.finish_us = std::max(schedule_.finish_us, held.ready_us);
    canonicalise(schedule_);
    return std::move(schedule_);
  }

 private:
  Held& held(int chunk, int member) { return held_[index(chunk) * index(count_) + index(member)]; }
  double bytes(int chunk) const { return problem_.demand.bytes(ChunkId{chunk}); }
  const Hop& hop(const PossibleSend& offer) const { return problem_.hops.hop(offer.hop); }
  int group(int member) const { return member / size_; }
  bool together(int a, int b) const { return a / (size_ * radix_) == b / (size_ * radix_); }
  int num_chunks() const { return static_cast<int>(problem_.demand.num_chunks()); }
  int num_places() const { return static_cast<int>(problem_.members.size()); }
  int place(int chunk) const { return chunk / problem_.chunks_a_place % num_places(); }
  /// The member's GPU among those that exchange the chunks of `place`, and back: -1 if it is none of them.
  GpuId gpu(int place, int member) const { return problem_.members[index(place)][index(member)]; }
  int member(int place, GpuId gpu) const { return positions_[index(place)][gpu.index()]; }
  int sender(int place, int h) const { return member(place, problem_.hops.hop(h).src); }

  bool share_in_pairs() {
    radix_ = 2;
    for (int m = 0; m < count_; ++m) {
      for (int c = 0; c < num_chunks(); ++c) begin(c, m).is_complete = m % 2 == 0;
    }
    for (int m = 0; m < count_; m += 2) {
      for (int c = 0; c < num_chunks(); ++c) offer_result(c, m);
    }
    return send_offers();
  }

  bool run_level(int radix, bool is_last) {
    radix_ = radix;
    begin_level(is_last);
    return send_offers();
  }

  /// Whether all members are complete then.
  bool send_offers() {
    while (!offers_.empty()) {
      PossibleSend offer = offers_.top();
      offers_.pop();
      Line& line = lines_[index(offer.hop)];
      const bool from_line = offer.in_line;
      if (from_line) {
        if (!line.is_announced(offer)) continue;
        line.announced.reset();
        line.waiting.erase(line.waiting.begin());
        offer.in_line = false;
      }
      try_to_send(line, offer, from_line);
      announce(line);
    }
    for (Held& held : held_) {
      if (!held.is_complete) return false;
      held.ready_us = held.last_us;
    }
    return true;
  }

  void try_to_send(Line& line, PossibleSend offer, bool from_line) {
    const double ready = ready_of(offer);
    const double start = start_of(offer, ready);
    if (start == kNotAtAll) return;
    const double arrival = start + hop(offer).duration_us(bytes(offer.chunk));
    if (arrival <= offer.arrival_us + 1e-9) return send(offer, start, arrival);
    offer.arrival_us = arrival;
    // For those that were ready by then, the hop has no room before `start` either.
    if (line.waiting.empty() || (from_line && ready <= line.start_us)) line.start_us = start;
    if (ready <= line.start_us && start >= line.start_us)
      line.waiting.insert(offer);
    else
      offers_.push(offer);
  }

  /// Puts the first of the line among the offers, unless it is there.
  void announce(Line& line) {
    if (line.waiting.empty()) return line.announced.reset();
    PossibleSend first = *line.waiting.begin();
    first.in_line = true;
    first.arrival_us = line.start_us + hop(first).duration_us(bytes(first.chunk));
    if (line.is_announced(first)) return;
    line.announced = first;
    offers_.push(first);
  }

  Held& begin(int chunk, int member) {
    Held& here = held(chunk, member);
    here.missing = other_groups(member);
    here.is_complete = false;
    here.first_us = kNotAtAll;
    here.last_us = here.ready_us;
    return here;
  }

  void begin_level(bool is_last) {
    for (int m = 0; m < count_; ++m) {
      // Of pairs the second ones have it in the end.
      const bool is_done = problem_.in_pairs && is_last && m % 2 == 0;
      for (int c = 0; c < num_chunks(); ++c) begin(c, m).is_complete = is_done;
    }
    for (int m = 0; m < count_; ++m) {
      for (int p = 0; p < num_places(); ++p) {
        std::set<int> heard;
        for (const int h : problem_.hops.into(gpu(p, m))) {
          const int from = sender(p, h);
          if (from >= 0 && together(from, m) && group(from) != group(m)) heard.insert(group(from));
        }
        if (heard == other_groups(m)) offer_sums(p, m);
      }
    }
  }

  std::set<int> other_groups(int member) const {
    std::set<int> others;
    for (int g = 0; g < radix_; ++g) others.insert(member / (size_ * radix_) * radix_ + g);
    others.erase(group(member));
    return others;
  }

  void offer_sums(int place_of_sums, int to) {
    for (const int h : problem_.hops.into(gpu(place_of_sums, to))) {
      const int from = sender(place_of_sums, h);
      if (from < 0 || !together(from, to) || group(from) == group(to)) continue;
      for (int c = 0; c < num_chunks(); ++c) {
        if (place(c) == place_of_sums) offer(SendOp::reduce, c, from, to, h);
      }
    }
  }

  void offer_result(int chunk, int from) {
    for (const int h : problem_.hops.out_of(gpu(place(chunk), from))) {
      const int to = member(place(chunk), problem_.hops.hop(h).dst);
      if (to >= 0 && together(from, to) && !held(chunk, to).is_complete)
        offer(SendOp::copy, chunk, from, to, h);
    }
  }

  void offer(SendOp op, int chunk, int from, int to, int h) {
    const int distance = (group(to) - group(from) + radix_) % radix_;
    const int shift = (to % size_ - from % size_ + size_) % size_;
    PossibleSend one{0, op, distance, shift, chunk, from, to, h};
    one.arrival_us = start_of(one, ready_of(one)) + hop(one).duration_us(bytes(chunk));
    if (one.arrival_us < kNotAtAll) offers_.push(one);
  }

  /// From when on its ends let the message start as things stand.
  double ready_of(const PossibleSend& offer) {
    const Held& from = held(offer.chunk, offer.from);
    const Held& to = held(offer.chunk, offer.to);
    const double takes_us = hop(offer).duration_us(bytes(offer.chunk));
    // It arrives after what its receiver has sent without it, and sums after what they are added to.
    double arrival = to.last_start_us + apart_us(to.last_start_us);
    const double rests_on = offer.op == SendOp::reduce ? to.ready_us : to.last_us;
    arrival = std::max(arrival, rests_on + apart_us(rests_on));
    const double ready = offer.op == SendOp::reduce ? from.ready_us : from.last_us;
    return std::max(ready, arrival - takes_us);
  }

  /// When the message may start as things stand; never, where it is of no use any more.
  double start_of(const PossibleSend& offer, double ready_us) {
    const Held& from = held(offer.chunk, offer.from);
    const Held& to = held(offer.chunk, offer.to);
    if (to.is_complete) return kNotAtAll;
    const double start = earliest_start(offer, ready_us);
    if (offer.op == SendOp::copy) return start;
    if (!to.missing.contains(group(offer.from))) return kNotAtAll;
    return start + apart_us(start) < from.first_us ? start : kNotAtAll;
  }

  double earliest_start(const PossibleSend& offer, double not_before_us) const {
    for (;;) {
      const double start = timetable_.earliest_start(hop(offer), bytes(offer.chunk), not_before_us);
      if (!std::isfinite(start)) return start;
      not_before_us =
          sums_in_switches_.start_apart_us(hop(offer), ChunkId{offer.chunk}, bytes(offer.chunk), start);
      if (not_before_us <= start) return start;
    }
  }

  void send(const PossibleSend& offer, double start, double arrival) {
    const std::size_t before = schedule_.sends.size();
    timetable_.reserve(hop(offer), ChunkId{offer.chunk}, bytes(offer.chunk), start, schedule_.sends);
    marks_.mark(hop(offer), offer.op, std::span(schedule_.sends).subspan(before));
    sums_in_switches_.note(hop(offer), ChunkId{offer.chunk}, bytes(offer.chunk), start);
    Held& from = held(offer.chunk, offer.from);
    Held& to = held(offer.chunk, offer.to);
    from.last_start_us = std::max(from.last_start_us, start);
    to.first_us = std::min(to.first_us, arrival);
    to.last_us = std::max(to.last_us, arrival);
    if (offer.op == SendOp::reduce) to.missing.erase(group(offer.from));
    if (offer.op == SendOp::reduce && !to.missing.empty()) return;
    to.is_complete = true;
    offer_result(offer.chunk, offer.to);
  }

  const ExchangeProblem& problem_;
  LinkTimetable timetable_;
  SumMarks marks_;
  SumsInSwitches sums_in_switches_;
  std::vector<std::vector<int>> positions_ = {};  ///< per place and GPU; -1: no member
  int count_;
  int size_ = 1;   ///< of the groups that have their sums
  int radix_ = 1;  ///< of the level
  std::vector<Held> held_;
  std::priority_queue<PossibleSend> offers_;
  std::vector<Line> lines_;  ///< per hop
  Schedule schedule_;
};

}  // namespace

std::optional<Schedule> exchange(const ExchangeProblem& problem, const std::vector<int>& radices) {
  return Exchange(problem).run(radices);
}

}  // namespace rondo
