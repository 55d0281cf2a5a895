#include "rondo/flows/rounding.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <span>

#include "load_potential.hpp"
#include "rondo/core/random.hpp"

namespace rondo {
namespace {

/// p of the potential: each stage sharpens what the one before has found, the last one differences of a
/// thousandth.
constexpr int kExponents[] = {8, 32, 128, 512, 2048};
/// Per stage: how often new routes are looked for, and how often the contributions are gone through after
/// each time.
constexpr int kPricings = 3;
constexpr int kPasses = 8;
/// A change counts if it is better by this part.
constexpr double kWorthwhileGain = 1e-9;
/// Weight of duration against load in the search for new routes, where nothing else tells them apart.
constexpr double kDurationWeight = 1e-6;

/// Without what it does between two visits of a GPU: a flow over time may go around where links are idle, and
/// data can wait instead.
Route without_detours(const std::vector<Hop>& hops, const Route& route) {
  Route direct{{}, route.bytes};
  std::vector<GpuId> visited{hops[static_cast<std::size_t>(route.hops.front())].src};
  for (std::size_t i = 0; i < route.hops.size(); ++i) {
    const GpuId gpu = hops[static_cast<std::size_t>(route.hops[i])].dst;
    direct.hops.push_back(route.hops[i]);
    if (!route.start_us.empty()) direct.start_us.push_back(route.start_us[i]);
    visited.push_back(gpu);
    const auto first =
        static_cast<std::size_t>(std::find(visited.begin(), visited.end(), gpu) - visited.begin());
    visited.resize(first + 1);
    direct.hops.resize(first);
    if (!route.start_us.empty()) direct.start_us.resize(first);
  }
  return direct;
}

class Rounding {
 public:
  Rounding(const Topology& topology, const Demand& demand, const RouteTable& table, std::uint64_t seed);

  void start_from_model();
  void start_from_shortest();
  void improve(const Deadline& deadline);
  RoutedChunks result() const;

 private:
  struct Candidate {
    double duration_us = 0;
    int chunks = 0;
    std::uint32_t begin = 0;  ///< of its uses among those of the contribution
    std::uint32_t end = 0;
  };
  /// What each visit reads lies together, since that of a million contributions does not fit the cache.
  struct Candidates {
    std::vector<Candidate> each;
    std::vector<UseId> uses;
  };
  struct Choice {
    std::size_t candidate = 0;
    double cost = std::numeric_limits<double>::infinity();
  };

  double bytes(std::size_t contribution) const {
    return demand_.contributions()[contribution].bytes / chunks_;
  }
  std::span<const UseId> uses_of(std::size_t contribution, const Candidate& candidate) const {
    return std::span(candidates_[contribution].uses)
        .subspan(candidate.begin, candidate.end - candidate.begin);
  }
  void add_candidate(std::size_t contribution, Route route);
  void put(std::size_t contribution, std::size_t candidate, int chunks);
  double cost(std::size_t contribution, const Candidate& candidate);
  Choice cheapest(std::size_t contribution);
  void set_scale();
  void price();
  bool add_if_new(std::size_t contribution, std::vector<int> hops);
  void prefetch(std::span<const std::size_t> next) const;
  bool pass(const Deadline& deadline);
  bool reroute(std::size_t contribution, std::size_t from);

  const Topology& topology_;
  const Demand& demand_;
  const RouteTable& table_;
  int chunks_;
  bool extensible_ =
      true;  ///< the routes of a model with time are left as they are: others would have no times
  Random random_;
  LoadPotential potential_;
  Digraph hop_graph_;
  std::vector<Candidates> candidates_;      ///< per contribution
  std::vector<std::vector<Route>> routes_;  ///< of the candidates
};

Rounding::Rounding(const Topology& topology, const Demand& demand, const RouteTable& table,
                   std::uint64_t seed)
    : topology_(topology),
      demand_(demand),
      table_(table),
      chunks_(demand.chunks_per_contribution()),
      random_(seed),
      potential_(topology, table.hops),
      hop_graph_{static_cast<int>(topology.num_gpus()), {}},
      candidates_(demand.contributions().size()),
      routes_(demand.contributions().size()) {
  potential_.set_exponent(kExponents[0]);
  for (const Hop& hop : table.hops) hop_graph_.arcs.push_back({hop.src.value, hop.dst.value});
}

void Rounding::add_candidate(std::size_t contribution, Route route) {
  Candidates& candidates = candidates_[contribution];
  Candidate candidate;
  candidate.begin = static_cast<std::uint32_t>(candidates.uses.size());
  for (const int h : route.hops) {
    const auto& uses = potential_.uses_of_hop(static_cast<std::size_t>(h));
    candidates.uses.insert(candidates.uses.end(), uses.begin(), uses.end());
    candidate.duration_us += table_.hops[static_cast<std::size_t>(h)].duration_us(bytes(contribution));
  }
  candidate.end = static_cast<std::uint32_t>(candidates.uses.size());
  candidates.each.push_back(candidate);
  routes_[contribution].push_back(std::move(route));
}

void Rounding::put(std::size_t contribution, std::size_t candidate, int chunks) {
  Candidate& c = candidates_[contribution].each[candidate];
  c.chunks += chunks;
  potential_.add(uses_of(contribution, c), bytes(contribution), chunks);
}

/// Growth of the potential by one more chunk. (A link that a route uses twice is counted as if by two
/// chunks.)
double Rounding::cost(std::size_t contribution, const Candidate& candidate) {
  double sum = potential_.of(candidate.duration_us);
  for (const UseId use : uses_of(contribution, candidate)) sum += potential_.growth(use, bytes(contribution));
  return sum;
}

Rounding::Choice Rounding::cheapest(std::size_t contribution) {
  Choice best;
  const std::vector<Candidate>& candidates = candidates_[contribution].each;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const double c = cost(contribution, candidates[i]);
    if (c < best.cost * (1 - kWorthwhileGain)) best = {i, c};
  }
  return best;
}

/// The potential is about the greatest load or duration.
void Rounding::set_scale() {
  double scale_us = potential_.greatest_load_us();
  for (const Candidates& candidates : candidates_) {
    for (const Candidate& c : candidates.each) {
      if (c.chunks > 0) scale_us = std::max(scale_us, c.duration_us);
    }
  }
  potential_.set_scale(scale_us);
}

void Rounding::start_from_model() {
  struct Open {
    std::size_t contribution;
    int chunks;
  };
  std::vector<Open> open;
  if (std::any_of(table_.of_contribution.begin(), table_.of_contribution.end(),
                  [](const std::vector<Route>& routes) { return routes.empty(); })) {
    price();  // the model's flow to some destination was lost among rounding errors
  }
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    double sum = 0;
    for (const Route& route : table_.of_contribution[i]) sum += route.bytes;
    int left = chunks_;
    for (const Route& route : table_.of_contribution[i]) {
      if (!route.start_us.empty()) extensible_ = false;
      add_candidate(i, route);
      const int whole = static_cast<int>(chunks_ * (route.bytes / sum) + kWorthwhileGain);
      put(i, routes_[i].size() - 1, whole);
      left -= whole;
    }
    if (left > 0) open.push_back({i, left});
  }
  random_.shuffle(std::span<Open>(open));
  set_scale();
  for (const Open& o : open) {
    for (int k = 0; k < o.chunks; ++k) put(o.contribution, cheapest(o.contribution).candidate, 1);
  }
}

void Rounding::start_from_shortest() {
  price();
  for (std::size_t i = 0; i < candidates_.size(); ++i) put(i, 0, chunks_);
}

/// Looks for routes that are shorter than all known ones under the marginal costs of the links.
void Rounding::price() {
  const double mean_bytes =
      std::accumulate(demand_.contributions().begin(), demand_.contributions().end(), 0.0,
                      [](double sum, const Contribution& c) { return sum + c.bytes; }) /
      static_cast<double>(demand_.num_chunks());
  double longest = 0;
  for (const Candidates& candidates : candidates_) {
    for (const Candidate& c : candidates.each)
      longest = std::max(longest, c.chunks > 0 ? c.duration_us : 0.0);
  }
  std::vector<double> length;
  for (std::size_t h = 0; h < table_.hops.size(); ++h) {
    double sum = (kDurationWeight + potential_.slope(longest)) * table_.hops[h].duration_us(mean_bytes);
    for (const UseId use : potential_.uses_of_hop(h)) sum += potential_.slope(use, mean_bytes);
    length.push_back(sum);
  }
  ShortestPathSearch search(hop_graph_);
  search.set_lengths(length);
  std::vector<std::optional<ShortestPaths>> from(topology_.num_gpus());
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    const Contribution& c = demand_.contributions()[i];
    auto& paths = from[c.origin.index()];
    if (!paths) paths = search.from(c.origin.value);
    std::vector<int> hops;
    for (int at = c.destinations.front().value; at != c.origin.value;) {
      const int h = paths->last_arc[static_cast<std::size_t>(at)];
      hops.push_back(h);
      at = table_.hops[static_cast<std::size_t>(h)].src.value;
    }
    std::reverse(hops.begin(), hops.end());
    add_if_new(i, std::move(hops));
  }
}

bool Rounding::add_if_new(std::size_t contribution, std::vector<int> hops) {
  for (const Route& route : routes_[contribution]) {
    if (route.hops == hops) return false;
  }
  add_candidate(contribution, {std::move(hops), 0});
  return true;
}

/// Takes one chunk off a candidate and puts it where it costs least. Returns whether that is elsewhere.
bool Rounding::reroute(std::size_t contribution, std::size_t from) {
  put(contribution, from, -1);
  const double stay = cost(contribution, candidates_[contribution].each[from]);
  const Choice best = cheapest(contribution);
  const bool moved = best.candidate != from && best.cost < stay * (1 - kWorthwhileGain);
  put(contribution, moved ? best.candidate : from, 1);
  return moved;
}

/// A random order over a million contributions misses the cache at each of them: two steps fetch ahead what
/// the next ones need.
void Rounding::prefetch(std::span<const std::size_t> next) const {
  constexpr std::size_t kSteps = 8;
  if (next.size() > 2 * kSteps) __builtin_prefetch(&candidates_[next[2 * kSteps]]);
  if (next.size() > kSteps) {
    const Candidates& candidates = candidates_[next[kSteps]];
    __builtin_prefetch(candidates.each.data());
    __builtin_prefetch(candidates.uses.data());
  }
}

bool Rounding::pass(const Deadline& deadline) {
  std::vector<std::size_t> order(candidates_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  random_.shuffle(std::span<std::size_t>(order));
  bool moved = false;
  for (std::size_t k = 0; k < order.size(); ++k) {
    if (deadline.is_over()) return false;
    prefetch(std::span<const std::size_t>(order).subspan(k));
    const std::size_t i = order[k];
    for (std::size_t from = 0; from < candidates_[i].each.size(); ++from) {
      while (candidates_[i].each[from].chunks > 0 && reroute(i, from)) moved = true;
    }
  }
  return moved;
}

void Rounding::improve(const Deadline& deadline) {
  for (const int exponent : kExponents) {
    potential_.set_exponent(exponent);
    for (int k = 0; k < kPricings; ++k) {
      if (deadline.is_over()) return;
      set_scale();
      if (extensible_) price();
      bool moved = false;
      for (int j = 0; j < kPasses && pass(deadline); ++j) moved = true;
      if (!moved) break;
    }
  }
}

RoutedChunks Rounding::result() const {
  RoutedChunks routed;
  routed.greatest_load_us = potential_.greatest_load_us();
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    for (std::size_t k = 0; k < routes_[i].size(); ++k) {
      const int chunks = candidates_[i].each[k].chunks;
      if (chunks == 0) continue;
      routed.route_of_chunk.insert(routed.route_of_chunk.end(), static_cast<std::size_t>(chunks),
                                   static_cast<int>(routed.routes.size()));
      // Not before: what a detour loads keeps others from being rounded to it.
      routed.routes.push_back(without_detours(table_.hops, routes_[i][k]));
    }
  }
  return routed;
}

}  // namespace

RoutedChunks round_to_chunks(const Topology& topology, const Demand& demand, const RouteTable& table,
                             RoutingStart start, std::uint64_t seed, const Deadline& deadline) {
  Rounding rounding(topology, demand, table, seed);
  if (start == RoutingStart::model) {
    rounding.start_from_model();
  } else {
    rounding.start_from_shortest();
  }
  rounding.improve(deadline);
  return rounding.result();
}

}  // namespace rondo
