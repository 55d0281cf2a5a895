#include "pairing.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <queue>
#include <tuple>

namespace rondo::lowering {

std::vector<Event> events_by_time(const Traffic& traffic, const std::vector<Connection>& connections,
                                  std::optional<int> depth) {
  const std::vector<Batch>& batches = traffic.batches;
  // Event 2 b is the departure of batch b, 2 b + 1 its arrival; the others stand between the two halves of a
  // precedence.
  const std::size_t num_events = 2 * batches.size();
  std::vector<std::vector<std::size_t>> followers(num_events + traffic.order.size());
  std::vector<int> waits_left(followers.size(), 0);
  const auto follows = [&](std::size_t later, std::size_t earlier) {
    followers[earlier].push_back(later);
    ++waits_left[later];
  };
  for (std::size_t b = 0; b < batches.size(); ++b) {
    follows(2 * b + 1, 2 * b);
    for (const int parent : batches[b].follows) follows(2 * b, 2 * static_cast<std::size_t>(parent) + 1);
  }
  const auto number = [](const Event& event) {
    return 2 * static_cast<std::size_t>(event.batch) + (event.is_arrival ? 1 : 0);
  };
  for (std::size_t p = 0; p < traffic.order.size(); ++p) {
    for (const Event& earlier : traffic.order[p].earlier) follows(num_events + p, number(earlier));
    for (const Event& later : traffic.order[p].later) follows(number(later), num_events + p);
  }
  for (const Connection& connection : connections) {
    for (std::size_t k = 1; k < connection.batches.size(); ++k) {
      const auto before = static_cast<std::size_t>(connection.batches[k - 1]);
      const auto after = static_cast<std::size_t>(connection.batches[k]);
      follows(2 * after, 2 * before);
      follows(2 * after + 1, 2 * before + 1);
      const auto room = static_cast<std::size_t>(depth.value_or(0));
      if (depth && k >= room)
        follows(2 * after, 2 * static_cast<std::size_t>(connection.batches[k - room]) + 1);
    }
  }
  // At equal times arrivals precede departures: a batch may leave as soon as it arrives.
  using Key = std::tuple<double, bool, std::size_t>;
  std::priority_queue<Key, std::vector<Key>, std::greater<>> ready;
  const auto push = [&](std::size_t e) {
    if (e >= num_events) {
      ready.push({-1, false, e});
      return;
    }
    const Batch& batch = batches[e / 2];
    const bool departs = e % 2 == 0;
    ready.push({departs ? batch.start_us : batch.arrival_us, departs, e});
  };
  for (std::size_t e = 0; e < waits_left.size(); ++e) {
    if (waits_left[e] == 0) push(e);
  }
  std::vector<Event> events;
  while (!ready.empty()) {
    const std::size_t e = std::get<2>(ready.top());
    ready.pop();
    if (e < num_events) events.push_back({.batch = static_cast<int>(e / 2), .is_arrival = e % 2 == 1});
    for (const std::size_t follower : followers[e]) {
      if (--waits_left[follower] == 0) push(follower);
    }
  }
  return events;
}

namespace {

/// Where the events of a connection's batches are in the order of all.
class Positions {
 public:
  Positions(const std::vector<Batch>& batches, const std::vector<Connection>& connections,
            const std::vector<Event>& events)
      : departure_(batches.size()),
        arrival_(batches.size()),
        next_arrival_(batches.size(), std::numeric_limits<int>::max()),
        last_departure_(batches.size(), -1) {
    for (std::size_t e = 0; e < events.size(); ++e) {
      auto& positions = events[e].is_arrival ? arrival_ : departure_;
      positions[static_cast<std::size_t>(events[e].batch)] = static_cast<int>(e);
    }
    for (const Connection& connection : connections) {
      for (std::size_t k = 1; k < connection.batches.size(); ++k) {
        const auto before = static_cast<std::size_t>(connection.batches[k - 1]);
        const auto after = static_cast<std::size_t>(connection.batches[k]);
        next_arrival_[before] = arrival_[after];
        last_departure_[after] = departure_[before];
      }
    }
  }

  /// Whether nothing arrives after `received` and nothing departs before `sent` on their connections, between
  /// the two.
  bool adjacent(int received, int sent) const {
    const auto in = static_cast<std::size_t>(received);
    const auto out = static_cast<std::size_t>(sent);
    return next_arrival_[in] > departure_[out] && last_departure_[out] < arrival_[in];
  }
  /// Of some batches the one that arrives last.
  int last_to_arrive(const std::vector<int>& some) const {
    return *std::ranges::max_element(some, {}, [&](int b) { return arrival_[static_cast<std::size_t>(b)]; });
  }

 private:
  std::vector<int> departure_, arrival_;
  std::vector<int> next_arrival_;    ///< per batch: of the next one on its connection
  std::vector<int> last_departure_;  ///< per batch: of the one before on its connection
};

}  // namespace

std::vector<Pair> pair_connections(const std::vector<Batch>& batches,
                                   const std::vector<Connection>& connections,
                                   const std::vector<Event>& events, int max_steps) {
  const auto at = [&](int c) -> const Connection& { return connections[static_cast<std::size_t>(c)]; };
  std::vector<int> carrier(batches.size());
  for (int c = 0; c < static_cast<int>(connections.size()); ++c) {
    for (const int b : at(c).batches) carrier[static_cast<std::size_t>(b)] = c;
  }
  const Positions positions(batches, connections, events);
  std::map<std::pair<int, int>, std::vector<std::pair<int, int>>> fusable;
  for (int b = 0; b < static_cast<int>(batches.size()); ++b) {
    const Batch& batch = batches[static_cast<std::size_t>(b)];
    if (batch.follows.empty()) continue;
    const int parent = positions.last_to_arrive(batch.follows);
    if (batch.chunks != batches[static_cast<std::size_t>(parent)].chunks) continue;
    const int in = carrier[static_cast<std::size_t>(parent)], out = carrier[static_cast<std::size_t>(b)];
    if (at(in).channel == at(out).channel && positions.adjacent(parent, b))
      fusable[{in, out}].emplace_back(parent, b);
  }

  std::vector<Pair> ranked;
  for (auto& [ends, fused] : fusable) {
    const std::size_t in = at(ends.first).batches.size(), out = at(ends.second).batches.size();
    const bool worth_it = 2 * fused.size() >= std::min(in, out);
    const bool fits = in + out - fused.size() <= static_cast<std::size_t>(max_steps);
    if (worth_it && fits) {
      ranked.push_back({.incoming = ends.first, .outgoing = ends.second, .fused = std::move(fused)});
    }
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const Pair& a, const Pair& b) { return a.fused.size() > b.fused.size(); });
  std::vector<char> in_taken(connections.size(), 0), out_taken(connections.size(), 0);
  std::vector<Pair> chosen;
  for (Pair& pair : ranked) {
    char& in = in_taken[static_cast<std::size_t>(pair.incoming)];
    char& out = out_taken[static_cast<std::size_t>(pair.outgoing)];
    if (in || out) continue;
    in = out = 1;
    chosen.push_back(std::move(pair));
  }
  return chosen;
}

}  // namespace rondo::lowering
