#include "clusters.hpp"

#include <algorithm>
#include <numeric>

namespace rondo::profile {
namespace {

constexpr double kGap = 1.3;     ///< between neighbouring values; less is one kind of link
constexpr double kLeast = 1e-6;  ///< two values of nothing are no gap

/// Values before a gap, ascending: up to each of them, links may be the near ones.
std::vector<double> ends_of_near(std::vector<double> values) {
  std::ranges::sort(values);
  std::vector<double> ends;
  for (std::size_t k = 1; k < values.size(); ++k) {
    if (values[k] > kGap * values[k - 1] + kLeast) ends.push_back(values[k - 1]);
  }
  return ends;
}

/// Components of the links up to `end`.
std::vector<int> components(int ranks, const std::vector<LinkFigures>& links,
                            const std::vector<double>& distance, double end) {
  std::vector<int> cluster(static_cast<std::size_t>(ranks));
  std::iota(cluster.begin(), cluster.end(), 0);
  for (std::size_t l = 0; l < links.size(); ++l) {
    if (distance[l] > end) continue;
    const int a = cluster[static_cast<std::size_t>(links[l].from)];
    const int b = cluster[static_cast<std::size_t>(links[l].to)];
    for (int& c : cluster) {
      if (c == std::max(a, b)) c = std::min(a, b);
    }
  }
  return cluster;
}

bool says_something(const std::vector<int>& cluster) {
  return std::ranges::any_of(cluster, [&](int c) { return c != cluster.front(); }) &&
         std::ranges::all_of(cluster, [&](int c) { return std::ranges::count(cluster, c) > 1; });
}

/// 0, 1, ... by first member.
std::vector<int> numbered(std::vector<int> cluster) {
  std::vector<int> numbers(cluster.size(), -1);
  int next = 0;
  for (int& c : cluster) {
    int& number = numbers[static_cast<std::size_t>(c)];
    if (number < 0) number = next++;
    c = number;
  }
  return cluster;
}

}  // namespace

std::vector<int> find_clusters(int ranks, const std::vector<LinkFigures>& links) {
  std::vector<double> later;
  std::vector<double> slower;
  for (const LinkFigures& link : links) {
    later.push_back(link.latency_us.value);
    slower.push_back(1 / link.GBps.value);
  }
  for (const std::vector<double>& distance : {slower, later}) {
    for (const double end : ends_of_near(distance)) {
      const std::vector<int> cluster = components(ranks, links, distance, end);
      if (says_something(cluster)) return numbered(cluster);
    }
  }
  return std::vector<int>(static_cast<std::size_t>(ranks), 0);
}

}  // namespace rondo::profile
