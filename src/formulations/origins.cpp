#include "origins.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "rondo/core/error.hpp"

namespace rondo {
namespace {

std::vector<int> each_alone(std::size_t n) {
  std::vector<int> orbit(n);
  std::iota(orbit.begin(), orbit.end(), 0);
  return orbit;
}

double per_member(int links, int nodes) {
  return static_cast<double>(links) / nodes;
}

}  // namespace

double Origin::links_a_head(int orbit, const Link& member) const {
  const auto head = static_cast<std::size_t>(node_orbit[member.dst.index()]);
  return per_member(links.size[static_cast<std::size_t>(orbit)], nodes.size[head]);
}

double Origin::links_a_tail(int orbit, const Link& member) const {
  const auto tail = static_cast<std::size_t>(node_orbit[member.src.index()]);
  return per_member(links.size[static_cast<std::size_t>(orbit)], nodes.size[tail]);
}

std::vector<Origin> origins_of(const Instance& instance, const char* model) {
  const Topology& topology = *instance.topology;
  if (!instance.demand.is_unicast()) {
    throw Error(
        ExitCode::unavailable,
        fmt::format("{} carries data with one destination each (AllToAll, Scatter, Gather); this demand is "
                    "multicast",
                    model));
  }
  std::map<GpuId, Origin> origins;
  if (instance.orbits) {
    for (const FlowOrbits::Origin& o : instance.orbits->origins) {
      origins[o.gpu] = {.gpu = o.gpu,
                        .size = static_cast<double>(o.size),
                        .link_orbit = o.link_orbit,
                        .node_orbit = o.node_orbit};
    }
  } else {
    for (const Contribution& c : instance.demand.contributions()) {
      origins.try_emplace(c.origin, Origin{.gpu = c.origin,
                                           .link_orbit = each_alone(topology.num_links()),
                                           .node_orbit = each_alone(topology.num_nodes())});
    }
  }
  for (auto& [gpu, origin] : origins) {
    origin.wanted.resize(topology.num_nodes());
    origin.links = OrbitTable(origin.link_orbit);
    origin.nodes = OrbitTable(origin.node_orbit);
  }
  for (const Contribution& c : instance.demand.contributions()) {
    const auto found = origins.find(c.origin);
    if (found == origins.end()) continue;
    found->second.wanted[topology.node_of(c.destinations.front()).index()] += c.bytes;
    found->second.ready_us = std::max(found->second.ready_us, c.ready_us);
  }
  std::vector<Origin> sorted;
  for (auto& [gpu, origin] : origins) sorted.push_back(std::move(origin));
  return sorted;
}

LinkLoads::LinkLoads(const Instance& instance, const std::vector<Origin>& origins)
    : orbit_(instance.orbits ? instance.orbits->link_orbit : each_alone(instance.topology->num_links())),
      orbits_(orbit_),
      shares_(static_cast<std::size_t>(orbits_.count())) {
  for (std::size_t i = 0; i < origins.size(); ++i) {
    const OrbitTable& links = origins[i].links;
    for (int o = 0; o < links.count(); ++o) {
      const auto at = static_cast<std::size_t>(o);
      const auto whole = static_cast<std::size_t>(orbit_[static_cast<std::size_t>(links.first[at])]);
      // The flows of all origins of an orbit over one link are those of one origin over all images of the
      // link.
      const double weight = origins[i].size * links.size[at] / orbits_.size[whole];
      shares_[whole].push_back({i, o, weight});
    }
  }
}

std::vector<LinkLoads::Share> LinkLoads::on(std::span<const LinkId> links) const {
  std::map<int, int> count;
  for (const LinkId l : links) ++count[orbit_[l.index()]];
  std::vector<Share> all;
  for (const auto& [orbit, members] : count) {
    for (const Share& share : shares_[static_cast<std::size_t>(orbit)])
      all.push_back({share.origin, share.link_orbit, share.weight * members});
  }
  return all;
}

double mean_contribution_bytes(const Demand& demand) {
  double sum = 0;
  for (const Contribution& c : demand.contributions()) sum += c.bytes;
  return sum / static_cast<double>(demand.contributions().size());
}

}  // namespace rondo
