#include "route_scheduling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <queue>
#include <tuple>

#include "compatible_set.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/index.hpp"
#include "rondo/core/link_timetable.hpp"
#include "rondo/core/random.hpp"

namespace rondo {
namespace {

class RouteScheduler {
 public:
  RouteScheduler(const Topology& topology, const std::vector<Hop>& hops, const Demand& demand,
                 const RoutedChunks& routed, const RouteRules& rules);
  std::optional<RouteStarts> run(const Deadline& deadline);

 private:
  /// A hop and the rest of a route behind it. Chunks that wait for the same leg differ in nothing but their
  /// numbers.
  struct Waiting {
    double start_us;  ///< in the model
    std::uint64_t tie;
    int chunk;
    bool operator>(const Waiting& o) const {
      return std::tie(start_us, tie, chunk) > std::tie(o.start_us, o.tie, o.chunk);
    }
  };
  struct Leg {
    int hop;
    int next;  ///< -1 at the destination
    std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> waiting = {};
  };
  struct Event {
    double t_us;
    int chunk;  ///< that has arrived where its next leg starts, or -1
    int hop;    ///< whose links are idle, or -1
    bool operator>(const Event& o) const {
      return std::tie(t_us, chunk, hop) > std::tie(o.t_us, o.chunk, o.hop);
    }
  };
  struct Urgency {
    double first, second;
    auto operator<=>(const Urgency&) const = default;
  };

  std::vector<int> intern(const Route& route);
  Urgency urgency(const Leg& leg) const;
  double load_weight(const Hop& hop) const;
  int any_leg(int hop) const;
  int most_urgent_leg(int hop) const;
  void arrive(int chunk);
  void look_at(int hop);
  void serve(double t_us);
  void start(int leg, double t_us);
  void wake(int hop, double t_us);
  double bytes(int chunk) const { return uniform_bytes_ ? *uniform_bytes_ : demand_.bytes(ChunkId{chunk}); }
  const Hop& hop(int h) const { return hops_[static_cast<std::size_t>(h)]; }
  Leg& leg(int l) { return legs_[static_cast<std::size_t>(l)]; }
  const Leg& leg(int l) const { return legs_[static_cast<std::size_t>(l)]; }

  const std::vector<Hop>& hops_;
  const Demand& demand_;
  const RoutedChunks& routed_;
  RouteOrder order_;
  Random random_;
  std::optional<double> uniform_bytes_;  ///< where all chunks have as many
  bool changes_;                         ///< some link's bandwidth does
  double mean_bytes_ = 0;
  LinkTimetable timetable_;
  std::vector<double> left_;  ///< per link: of its bandwidth, for those that compete
  std::vector<Leg> legs_;
  std::map<std::pair<int, int>, int> leg_of_;  ///< (hop, next) -> leg
  std::vector<std::vector<int>> legs_of_hop_;
  std::vector<std::vector<int>> legs_of_route_;
  std::vector<std::size_t> position_;  ///< per chunk: legs behind it
  double greatest_load_us_ = 0;
  std::vector<double> remaining_us_;  ///< per link: load still to be carried
  std::vector<double> wake_us_;       ///< per hop: when it is looked at next
  std::vector<int> woken_;
  std::vector<char> is_woken_;  ///< per hop
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  RouteStarts result_;
  std::vector<Send> sends_;  ///< of the last start alone
  std::size_t delivered_ = 0;
};

RouteScheduler::RouteScheduler(const Topology& topology, const std::vector<Hop>& hops, const Demand& demand,
                               const RoutedChunks& routed, const RouteRules& rules)
    : hops_(hops),
      demand_(demand),
      routed_(routed),
      order_(rules.order),
      random_(rules.seed),
      uniform_bytes_(demand.uniform_chunk_bytes()),
      changes_(topology.has_bandwidth_steps()),
      timetable_(topology, rules.concurrency),
      left_(topology.num_links(), 1),
      legs_of_hop_(hops.size()),
      position_(demand.num_chunks(), 0),
      remaining_us_(topology.num_links(), 0.0),
      wake_us_(hops.size(), -1),
      is_woken_(hops.size(), 0) {
  for (const Route& route : routed.routes) legs_of_route_.push_back(intern(route));
  for (std::size_t c = 0; c < demand.num_chunks(); ++c) {
    const int chunk = static_cast<int>(c);
    mean_bytes_ += bytes(chunk) / static_cast<double>(demand.num_chunks());
    for (const int h : routed.routes[static_cast<std::size_t>(routed.route_of_chunk[c])].hops) {
      for (const HopLink& part : hop(h).links) remaining_us_[part.link.index()] += part.load_us(bytes(chunk));
    }
    events_.push({demand.ready_us(ChunkId{chunk}), chunk, -1});
  }
  greatest_load_us_ = *std::max_element(remaining_us_.begin(), remaining_us_.end());
}

/// The route's legs, first to last; routes that end alike share theirs.
std::vector<int> RouteScheduler::intern(const Route& route) {
  std::vector<int> legs;
  int next = -1;
  for (auto h = route.hops.rbegin(); h != route.hops.rend(); ++h) {
    const auto [entry, is_new] = leg_of_.try_emplace({*h, next}, static_cast<int>(legs_.size()));
    if (is_new) {
      legs_.push_back({*h, next});
      legs_of_hop_[static_cast<std::size_t>(*h)].push_back(entry->second);
    }
    next = entry->second;
    legs.push_back(next);
  }
  std::reverse(legs.begin(), legs.end());
  return legs;
}

RouteScheduler::Urgency RouteScheduler::urgency(const Leg& l) const {
  double tail_us = 0;
  double greatest_us = 0;
  double sum_us = 0;
  for (int n = l.next; n >= 0; n = leg(n).next) {
    tail_us += hop(leg(n).hop).duration_us(mean_bytes_);
    for (const HopLink& part : hop(leg(n).hop).links) {
      const double remaining = remaining_us_[part.link.index()];
      greatest_us = std::max(greatest_us, remaining);
      sum_us += remaining;
    }
  }
  switch (order_) {
    case RouteOrder::load:
      return {sum_us + tail_us, 0};
    case RouteOrder::model:
      return {-l.waiting.top().start_us, greatest_us + tail_us};
    case RouteOrder::bottleneck:
      break;
  }
  return {greatest_us + tail_us, sum_us};
}

/// The cube lets one link with much to carry outweigh several with less.
double RouteScheduler::load_weight(const Hop& h) const {
  double sum = 0;
  for (const HopLink& part : h.links) {
    const double share = remaining_us_[part.link.index()] / greatest_load_us_;
    sum += share * share * share;
  }
  return sum;
}

/// One that chunks wait for; -1: none.
int RouteScheduler::any_leg(int h) const {
  for (const int l : legs_of_hop_[static_cast<std::size_t>(h)]) {
    if (!leg(l).waiting.empty()) return l;
  }
  return -1;
}

int RouteScheduler::most_urgent_leg(int h) const {
  int best = -1;
  Urgency most{};
  for (const int l : legs_of_hop_[static_cast<std::size_t>(h)]) {
    if (leg(l).waiting.empty()) continue;
    const Urgency u = urgency(leg(l));
    if (best < 0 || u > most) {
      best = l;
      most = u;
    }
  }
  return best;
}

void RouteScheduler::arrive(int chunk) {
  const auto c = static_cast<std::size_t>(chunk);
  const auto route = static_cast<std::size_t>(routed_.route_of_chunk[c]);
  const auto& legs = legs_of_route_[route];
  if (position_[c] == legs.size()) {
    ++delivered_;
    return;
  }
  const auto& starts = routed_.routes[route].start_us;
  const int l = legs[position_[c]];
  leg(l).waiting.push({starts.empty() ? 0.0 : starts[position_[c]], random_.next(), chunk});
  look_at(leg(l).hop);
}

/// When this moment is decided.
void RouteScheduler::look_at(int h) {
  char& is_woken = is_woken_[static_cast<std::size_t>(h)];
  if (is_woken == 0) woken_.push_back(h);
  is_woken = 1;
}

void RouteScheduler::start(int l, double t_us) {
  const int chunk = leg(l).waiting.top().chunk;
  leg(l).waiting.pop();
  const Hop& h = hop(leg(l).hop);
  sends_.clear();
  const double arrival = timetable_.reserve(h, ChunkId{chunk}, bytes(chunk), t_us, sends_);
  result_.starts.push_back({chunk, position_[static_cast<std::size_t>(chunk)], t_us});
  for (const HopLink& part : h.links) remaining_us_[part.link.index()] -= part.load_us(bytes(chunk));
  ++position_[static_cast<std::size_t>(chunk)];
  result_.finish_us = std::max(result_.finish_us, arrival);
  events_.push({arrival, chunk, -1});
}

/// Has the hop looked at again when its links are idle.
void RouteScheduler::wake(int h, double t_us) {
  const int l = uniform_bytes_ ? any_leg(h) : most_urgent_leg(h);  // its bytes count
  if (l < 0) return;
  const double idle = timetable_.earliest_start(hop(h), bytes(leg(l).waiting.top().chunk), t_us);
  double& wake_us = wake_us_[static_cast<std::size_t>(h)];
  if (!std::isfinite(idle) || (wake_us > t_us && wake_us <= idle)) return;
  wake_us = idle;
  events_.push({idle, -1, h});
}

/// Of the hops that could start at this moment a set is started that keeps the links with the greatest
/// remaining loads busy; among equals the most urgent chunks go first.
void RouteScheduler::serve(double t_us) {
  struct Offer {
    double weight;
    Urgency urgency;
    std::uint64_t tie;
    int leg;
  };
  std::ranges::sort(woken_);
  std::vector<Offer> offers;
  for (const int h : woken_) {
    is_woken_[static_cast<std::size_t>(h)] = 0;
    const int any = uniform_bytes_ ? any_leg(h) : most_urgent_leg(h);  // its bytes count
    if (any < 0 || !timetable_.can_start(hop(h), bytes(leg(any).waiting.top().chunk), t_us)) continue;
    const int l = uniform_bytes_ ? most_urgent_leg(h) : any;
    offers.push_back({load_weight(hop(h)), urgency(leg(l)), random_.next(), l});
  }
  std::sort(offers.begin(), offers.end(), [](const Offer& a, const Offer& b) {
    return std::tie(b.weight, b.urgency, a.tie, a.leg) < std::tie(a.weight, a.urgency, b.tie, b.leg);
  });
  std::vector<Claim> claims;
  for (const Offer& offer : offers) {
    const Leg& l = leg(offer.leg);
    Claim& claim = claims.emplace_back();
    claim.weight = offer.weight;
    for (const HopLink& part : hop(l.hop).links) {
      claim.parts.push_back({part.link.value, part.share});
      double& left = left_[part.link.index()];
      left = std::min(left, timetable_.share_left(part, bytes(l.waiting.top().chunk), t_us));
    }
  }
  const std::vector<std::size_t> chosen = compatible_set(claims, random_, left_);
  for (const Claim& claim : claims) {
    for (const ClaimedPart& part : claim.parts) left_[index(part.resource)] = 1;
  }
  for (const std::size_t i : chosen) {
    const Leg& l = leg(offers[i].leg);
    // What groups of links share is no claim, and a link may have room for some of the set only: they reach
    // it at different times.
    if (timetable_.can_start(hop(l.hop), bytes(l.waiting.top().chunk), t_us)) start(offers[i].leg, t_us);
  }
  for (const int h : woken_) wake(h, t_us);
  woken_.clear();
}

std::optional<RouteStarts> RouteScheduler::run(const Deadline& deadline) {
  while (!events_.empty()) {
    if (deadline.is_over()) return std::nullopt;
    // What happens at the same time is decided together, at the latest of the times that are equal.
    double t = events_.top().t_us;
    const double until = t + time_slack_us(t);
    for (; !events_.empty() && events_.top().t_us <= until; events_.pop()) {
      const Event event = events_.top();
      t = std::max(t, event.t_us);
      if (event.chunk >= 0) arrive(event.chunk);
      if (event.hop >= 0) look_at(event.hop);
    }
    serve(t);
  }
  if (delivered_ < demand_.num_chunks()) {
    throw Error(ExitCode::unavailable,
                changes_
                    ? "a link goes down before all chunks have crossed it that flow over it, and stays down "
                      "(bandwidth_steps); use engine list"
                    : "a link is faster than the shared bandwidth that it belongs to, so that no chunk can "
                      "cross it; give the link at most the bandwidth of the group");
  }
  return std::move(result_);
}

}  // namespace

std::optional<RouteStarts> start_routes(const Topology& topology, const std::vector<Hop>& hops,
                                        const Demand& demand, const RoutedChunks& routed,
                                        const RouteRules& rules, const Deadline& deadline) {
  return RouteScheduler(topology, hops, demand, routed, rules).run(deadline);
}

Schedule schedule_of(const RouteStarts& starts, const Topology& topology, const std::vector<Hop>& hops,
                     const Demand& demand, const RoutedChunks& routed) {
  Schedule schedule;
  schedule.finish_us = starts.finish_us;
  for (const RouteStart& start : starts.starts) {
    const ChunkId chunk{start.chunk};
    const auto route = static_cast<std::size_t>(routed.route_of_chunk[chunk.index()]);
    const Hop& hop = hops[static_cast<std::size_t>(routed.routes[route].hops[start.position])];
    append_sends(topology, hop, chunk, demand.bytes(chunk), start.start_us, schedule.sends);
  }
  canonicalise(schedule);
  return schedule;
}

std::optional<Schedule> schedule_routes(const Topology& topology, const std::vector<Hop>& hops,
                                        const Demand& demand, const RoutedChunks& routed,
                                        const RouteRules& rules, const Deadline& deadline) {
  const auto starts = start_routes(topology, hops, demand, routed, rules, deadline);
  if (!starts) return std::nullopt;
  return schedule_of(*starts, topology, hops, demand, routed);
}

}  // namespace rondo
