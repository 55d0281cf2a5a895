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
    int next;               ///< kNoLeg at the destination
    double tail_us = 0;     ///< of the hops behind it
    std::size_t begin = 0;  ///< of the links behind it, in links_behind_
    std::size_t end = 0;
    std::size_t position = 0;  ///< in legs_of_hop_, where chunks wait for it
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
  struct Offer {
    double weight;
    Urgency urgency;
    std::uint64_t tie;
    int leg;
  };
  /// Where a chunk is.
  struct Place {
    int leg;  ///< that comes next; kNoLeg at the destination
    int position = 0;
  };
  static constexpr int kNoLeg = -1;

  int first_leg(const Route& route);
  Urgency urgency(const Leg& leg) const;
  double load_weight(const Hop& hop) const;
  /// One that chunks wait for, or kNoLeg.
  int any_leg(int h) const {
    return legs_of_hop_[index(h)].empty() ? kNoLeg : legs_of_hop_[index(h)].front();
  }
  int most_urgent_leg(int hop) const;
  std::optional<double> next_time() const;
  Event take_event();
  void arrive(int chunk);
  void look_at(int hop);
  void serve(double t_us);
  void start(int leg, double t_us);
  void wake(int hop, double t_us);
  double bytes(int chunk) const { return uniform_bytes_ ? *uniform_bytes_ : demand_.bytes(ChunkId{chunk}); }
  const Hop& hop(int h) const { return hops_[index(h)]; }
  Leg& leg(int l) { return legs_[index(l)]; }
  const Leg& leg(int l) const { return legs_[index(l)]; }

  const std::vector<Hop>& hops_;
  const Demand& demand_;
  const RoutedChunks& routed_;
  RouteOrder order_;
  Random random_;
  std::optional<double> uniform_bytes_;  ///< where all chunks have as many
  bool changes_;                         ///< some link's bandwidth does
  bool is_timed_;                        ///< the model has times
  double mean_bytes_ = 0;
  LinkTimetable timetable_;
  std::vector<double> left_;  ///< per link: of its bandwidth, for those that compete
  std::vector<Leg> legs_;
  std::vector<std::size_t> links_behind_;      ///< of leg after leg
  std::map<std::pair<int, int>, int> leg_of_;  ///< (hop, next) -> leg
  std::vector<std::vector<int>> legs_of_hop_;  ///< those that chunks wait for
  std::vector<Place> place_of_;                ///< per chunk
  double greatest_load_us_ = 0;
  std::vector<double> remaining_us_;  ///< per link: load still to be carried
  std::vector<double> wake_us_;       ///< per hop: when it is looked at next
  std::vector<int> woken_;
  std::vector<char> is_woken_;  ///< per hop
  std::vector<Offer> offers_;   ///< of this moment, as claims_
  std::vector<Claim> claims_;
  std::vector<Event> ready_;   ///< when data become ready; soonest first. A heap of all chunks would be large
  std::size_t num_ready_ = 0;  ///< of these, that have been taken
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;  ///< all others
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
      is_timed_(std::ranges::any_of(routed.routes, [](const Route& r) { return !r.start_us.empty(); })),
      timetable_(topology, rules.concurrency),
      left_(topology.num_links(), 1),
      legs_of_hop_(hops.size()),
      remaining_us_(topology.num_links(), 0.0),
      wake_us_(hops.size(), -1),
      is_woken_(hops.size(), 0) {
  const int num_chunks = static_cast<int>(demand.num_chunks());
  for (int chunk = 0; chunk < num_chunks; ++chunk)
    mean_bytes_ += bytes(chunk) / static_cast<double>(num_chunks);
  std::vector<int> first_leg_of_route;
  for (const Route& route : routed.routes) first_leg_of_route.push_back(first_leg(route));
  std::size_t num_starts = 0;
  for (int chunk = 0; chunk < num_chunks; ++chunk) {
    const std::size_t route = index(routed.route_of_chunk[index(chunk)]);
    for (const int h : routed.routes[route].hops) {
      for (const HopLink& part : hop(h).links) remaining_us_[part.link.index()] += part.load_us(bytes(chunk));
    }
    num_starts += routed.routes[route].hops.size();
    place_of_.push_back({first_leg_of_route[route]});
    ready_.push_back({demand.ready_us(ChunkId{chunk}), chunk, -1});
  }
  std::ranges::sort(ready_, [](const Event& a, const Event& b) { return b > a; });
  result_.starts.reserve(num_starts);
  greatest_load_us_ = *std::max_element(remaining_us_.begin(), remaining_us_.end());
}

/// Of the route's legs; routes that end alike share theirs.
int RouteScheduler::first_leg(const Route& route) {
  int next = kNoLeg;
  for (auto h = route.hops.rbegin(); h != route.hops.rend(); ++h) {
    const auto [entry, is_new] = leg_of_.try_emplace({*h, next}, static_cast<int>(legs_.size()));
    if (is_new) {
      Leg added{.hop = *h, .next = next, .begin = links_behind_.size()};
      for (int n = next; n != kNoLeg; n = leg(n).next) {
        const Hop& behind = hop(leg(n).hop);
        added.tail_us += behind.duration_us(mean_bytes_);
        for (const HopLink& part : behind.links) links_behind_.push_back(part.link.index());
      }
      added.end = links_behind_.size();
      legs_.push_back(std::move(added));
    }
    next = entry->second;
  }
  return next;
}

RouteScheduler::Urgency RouteScheduler::urgency(const Leg& l) const {
  double greatest_us = 0;
  double sum_us = 0;
  for (std::size_t k = l.begin; k < l.end; ++k) {
    const double remaining = remaining_us_[links_behind_[k]];
    greatest_us = std::max(greatest_us, remaining);
    sum_us += remaining;
  }
  switch (order_) {
    case RouteOrder::load:
      return {sum_us + l.tail_us, 0};
    case RouteOrder::model:
      return {-l.waiting.top().start_us, greatest_us + l.tail_us};
    case RouteOrder::bottleneck:
      break;
  }
  return {greatest_us + l.tail_us, sum_us};
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

/// The first one of those that are equal.
int RouteScheduler::most_urgent_leg(int h) const {
  int best = kNoLeg;
  Urgency most{};
  for (const int l : legs_of_hop_[index(h)]) {
    const Urgency u = urgency(leg(l));
    if (best == kNoLeg || u > most || (u == most && l < best)) {
      best = l;
      most = u;
    }
  }
  return best;
}

void RouteScheduler::arrive(int chunk) {
  const Place place = place_of_[index(chunk)];
  if (place.leg == kNoLeg) {
    ++delivered_;
    return;
  }
  double start_us = 0;
  if (is_timed_) {
    const auto& starts = routed_.routes[index(routed_.route_of_chunk[index(chunk)])].start_us;
    if (!starts.empty()) start_us = starts[index(place.position)];
  }
  Leg& l = leg(place.leg);
  if (l.waiting.empty()) {
    l.position = legs_of_hop_[index(l.hop)].size();
    legs_of_hop_[index(l.hop)].push_back(place.leg);
  }
  l.waiting.push({start_us, random_.next(), chunk});
  look_at(l.hop);
}

/// When this moment is decided.
void RouteScheduler::look_at(int h) {
  char& is_woken = is_woken_[index(h)];
  if (is_woken == 0) woken_.push_back(h);
  is_woken = 1;
}

void RouteScheduler::start(int leg_number, double t_us) {
  Leg& l = leg(leg_number);
  const int chunk = l.waiting.top().chunk;
  l.waiting.pop();
  if (l.waiting.empty()) {
    std::vector<int>& legs = legs_of_hop_[index(l.hop)];
    leg(legs.back()).position = l.position;
    legs[l.position] = legs.back();
    legs.pop_back();
  }
  const Hop& h = hop(l.hop);
  sends_.clear();
  const double arrival = timetable_.reserve(h, ChunkId{chunk}, bytes(chunk), t_us, sends_);
  Place& place = place_of_[index(chunk)];
  result_.starts.push_back({chunk, index(place.position), t_us});
  for (const HopLink& part : h.links) remaining_us_[part.link.index()] -= part.load_us(bytes(chunk));
  place = {l.next, place.position + 1};
  result_.finish_us = std::max(result_.finish_us, arrival);
  events_.push({arrival, chunk, -1});
}

/// Has the hop looked at again when its links are idle.
void RouteScheduler::wake(int h, double t_us) {
  const int l = uniform_bytes_ ? any_leg(h) : most_urgent_leg(h);  // its bytes count
  if (l == kNoLeg) return;
  const double idle = timetable_.earliest_start(hop(h), bytes(leg(l).waiting.top().chunk), t_us);
  double& wake_us = wake_us_[index(h)];
  if (!std::isfinite(idle) || (wake_us > t_us && wake_us <= idle)) return;
  wake_us = idle;
  events_.push({idle, -1, h});
}

/// Of the hops that could start at this moment a set is started that keeps the links with the greatest
/// remaining loads busy; among equals the most urgent chunks go first.
void RouteScheduler::serve(double t_us) {
  std::ranges::sort(woken_);
  offers_.clear();
  for (const int h : woken_) {
    is_woken_[index(h)] = 0;
    const int any = uniform_bytes_ ? any_leg(h) : most_urgent_leg(h);  // its bytes count
    if (any == kNoLeg || !timetable_.can_start(hop(h), bytes(leg(any).waiting.top().chunk), t_us)) continue;
    const int l = uniform_bytes_ ? most_urgent_leg(h) : any;
    offers_.push_back({load_weight(hop(h)), urgency(leg(l)), random_.next(), l});
  }
  std::sort(offers_.begin(), offers_.end(), [](const Offer& a, const Offer& b) {
    return std::tie(b.weight, b.urgency, a.tie, a.leg) < std::tie(a.weight, a.urgency, b.tie, b.leg);
  });
  if (claims_.size() < offers_.size()) claims_.resize(offers_.size());
  const std::span<Claim> claims = std::span(claims_).first(offers_.size());
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const Leg& l = leg(offers_[i].leg);
    claims[i].weight = offers_[i].weight;
    claims[i].parts.clear();
    for (const HopLink& part : hop(l.hop).links) {
      claims[i].parts.push_back({part.link.value, part.share});
      double& left = left_[part.link.index()];
      left = std::min(left, timetable_.share_left(part, bytes(l.waiting.top().chunk), t_us));
    }
  }
  const std::vector<std::size_t> chosen = compatible_set(claims, random_, left_);
  for (const Claim& claim : claims) {
    for (const ClaimedPart& part : claim.parts) left_[index(part.resource)] = 1;
  }
  for (const std::size_t i : chosen) {
    const Leg& l = leg(offers_[i].leg);
    // What groups of links share is no claim, and a link may have room for some of the set only: they reach
    // it at different times.
    if (timetable_.can_start(hop(l.hop), bytes(l.waiting.top().chunk), t_us)) start(offers_[i].leg, t_us);
  }
  for (const int h : woken_) wake(h, t_us);
  woken_.clear();
}

/// Of the next event; nothing where there is none.
std::optional<double> RouteScheduler::next_time() const {
  std::optional<double> t_us;
  if (num_ready_ < ready_.size()) t_us = ready_[num_ready_].t_us;
  if (!events_.empty() && (!t_us || events_.top().t_us < *t_us)) t_us = events_.top().t_us;
  return t_us;
}

/// The next one.
RouteScheduler::Event RouteScheduler::take_event() {
  const bool is_ready = num_ready_ < ready_.size();
  if (is_ready && (events_.empty() || events_.top() > ready_[num_ready_])) return ready_[num_ready_++];
  const Event event = events_.top();
  events_.pop();
  return event;
}

std::optional<RouteStarts> RouteScheduler::run(const Deadline& deadline) {
  while (std::optional<double> next = next_time()) {
    if (deadline.is_over()) return std::nullopt;
    // What happens at the same time is decided together, at the latest of the times that are equal.
    double t = *next;
    const double until = t + time_slack_us(t);
    for (; next && *next <= until; next = next_time()) {
      const Event event = take_event();
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
  const auto hop_of = [&](const RouteStart& start) -> const Hop& {
    const Route& route = routed.routes[index(routed.route_of_chunk[index(start.chunk)])];
    return hops[index(route.hops[start.position])];
  };
  std::size_t num_sends = 0;
  for (const RouteStart& start : starts.starts) num_sends += hop_of(start).links.size();
  schedule.sends.reserve(num_sends);
  for (const RouteStart& start : starts.starts) {
    const ChunkId chunk{start.chunk};
    const Hop& hop = hop_of(start);
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
