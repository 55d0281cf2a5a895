#include "orbit_hops.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <utility>

namespace rondo {
namespace {

constexpr std::size_t kFewPeers = 32;

}  // namespace

OrbitHops::OrbitHops(const Topology& topology, const FreeGroup& group, std::size_t max_hops) : group_(group) {
  const auto orbits = static_cast<int>(group.num_gpu_orbits());
  for (const std::size_t max_peers : {kAllPeers, kFewPeers}) {
    const std::size_t max_paths = max_peers == kAllPeers ? 4 : 1;
    hops_.clear();
    out_.assign(group.num_gpu_orbits(), {});
    in_.assign(group.num_gpu_orbits(), {});
    for (int orbit = 0; orbit < orbits; ++orbit) {
      for (Hop& hop : hops_from(topology, group.gpu(orbit, 0), max_paths, max_peers)) {
        if (!group.over_representatives(hop)) continue;
        const FreeGroup::Place to = group.place(hop.dst);
        const int h = static_cast<int>(hops_.size());
        out_[static_cast<std::size_t>(orbit)].push_back(h);
        in_[static_cast<std::size_t>(to.orbit)].push_back(h);
        hops_.push_back({orbit, to.orbit, to.element, group.inverse(to.element), std::move(hop)});
      }
      if (max_peers == kAllPeers && hops_.size() > max_hops) break;
    }
    if (hops_.size() <= max_hops) return;
  }
}

bool OrbitHops::reach_all() const {
  // The group maps every GPU of an orbit to any other of it: it is enough that one GPU reaches all, and all
  // reach it.
  const std::size_t orbits = group_.num_gpu_orbits();
  const auto count_reached = [&](bool forwards) {
    std::vector<char> seen(orbits * group_.order(), 0);
    std::vector<std::size_t> reached{0};  // (element, orbit)
    seen[0] = 1;
    for (std::size_t i = 0; i < reached.size(); ++i) {
      const int element = static_cast<int>(reached[i] / orbits);
      for (const int h : (forwards ? out_ : in_)[reached[i] % orbits]) {
        const OrbitHop& hop = hops_[static_cast<std::size_t>(h)];
        const int there = group_.product(element, forwards ? hop.shift : hop.back);
        const auto next =
            static_cast<std::size_t>(there) * orbits + static_cast<std::size_t>(forwards ? hop.to : hop.from);
        if (std::exchange(seen[next], 1) == 0) reached.push_back(next);
      }
    }
    return reached.size();
  };
  const std::size_t gpus = orbits * group_.order();
  return count_reached(true) == gpus && count_reached(false) == gpus;
}

std::vector<float> OrbitHops::relay_us(double bytes) const {
  const std::size_t orbits = group_.num_gpu_orbits();
  const std::size_t gpus = orbits * group_.order();
  std::vector<double> duration;
  for (const OrbitHop& hop : hops_) duration.push_back(hop.hop.duration_us(bytes));
  std::vector<float> result(orbits * gpus, std::numeric_limits<float>::infinity());
  std::vector<double> distance(gpus);  // (element, orbit)
  const auto at = [&](FreeGroup::Place p) {
    return static_cast<std::size_t>(p.element) * orbits + static_cast<std::size_t>(p.orbit);
  };
  using Reached = std::pair<double, std::size_t>;
  std::priority_queue<Reached, std::vector<Reached>, std::greater<>> queue;
  for (std::size_t a = 0; a < orbits; ++a) {
    distance.assign(gpus, std::numeric_limits<double>::infinity());
    distance[a] = 0;
    queue.push({0, a});
    while (!queue.empty()) {
      const auto [so_far, where] = queue.top();
      queue.pop();
      if (so_far > distance[where]) continue;
      const int element = static_cast<int>(where / orbits);
      for (const int h : out_[where % orbits]) {
        const OrbitHop& hop = hops_[static_cast<std::size_t>(h)];
        const std::size_t next = at({hop.to, group_.product(element, hop.shift)});
        const double d = so_far + duration[static_cast<std::size_t>(h)];
        if (d >= distance[next]) continue;
        distance[next] = d;
        queue.push({d, next});
      }
    }
    std::ranges::copy(distance, result.begin() + static_cast<std::ptrdiff_t>(a * gpus));
  }
  return result;
}

}  // namespace rondo
