#pragma once

#include <algorithm>
#include <vector>

#include "route_graph.hpp"
#include "route_orbits.hpp"

namespace rondo {

/// Per link what it carries; a way's hops share evenly.
class WayLoads {
 public:
  explicit WayLoads(const RouteGraph& graph) : graph_(graph), us_(graph.topology().num_links(), 0) {}
  void add(int w, double bytes, double times = 1) {
    const Way& way = graph_.way(w);
    for (const int h : way.hops) {
      for (const HopLink& part : graph_.table().hop(h).links)
        us_[part.link.index()] += times * part.load_us(bytes) / static_cast<double>(way.hops.size());
    }
  }
  double most_us(int w) const {
    double most = 0;
    for (const int h : graph_.way(w).hops) {
      for (const HopLink& part : graph_.table().hop(h).links) most = std::max(most, us_[part.link.index()]);
    }
    return most;
  }
  double most_us() const { return us_.empty() ? 0 : *std::ranges::max_element(us_); }

 private:
  const RouteGraph& graph_;
  std::vector<double> us_;
};

/// One tree after another, each along the earliest ways over links that carry little so far; those of images
/// are the images of trees, where ways join these (`is_symmetric`: everywhere). Throws Error(unavailable)
/// where the sketch leaves a destination no way.
RouteTrees grown_trees(const RouteGraph& graph, const Demand& demand, const RouteOrbits& orbits,
                       bool& is_symmetric);

}  // namespace rondo
