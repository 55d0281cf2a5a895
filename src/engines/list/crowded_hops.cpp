#include "crowded_hops.hpp"

#include <algorithm>
#include <numeric>

#include "rondo/core/index.hpp"

namespace rondo {
namespace {

/// Of loads that would be equal but for rounding.
constexpr double kRounding = 1e-9;

}  // namespace

std::vector<char> crowded_hops(const Topology& topology, std::span<const HopUse> hops,
                               std::span<const int> class_of_link, std::span<const double> lacking_bytes,
                               double bytes) {
  std::vector<char> crowded(hops.size(), 0);
  const auto has_one_link_in = [&](const Hop& hop) {
    return topology.in_links(topology.node_of(hop.dst)).size() == 1;
  };
  if (std::ranges::none_of(hops, has_one_link_in, [](const HopUse& use) -> const Hop& { return *use.hop; }))
    return crowded;

  std::vector<int> paths;  // beside each hop, itself among them
  std::vector<int> senders(lacking_bytes.size(), 0);
  for (std::size_t first = 0; first < hops.size(); first = paths.size()) {
    const Hop& hop = *hops[first].hop;
    const auto others = std::ranges::find_if_not(hops.subspan(first), [&](const HopUse& use) {
      return use.hop->src == hop.src && use.hop->dst == hop.dst;
    });
    const auto count = static_cast<std::size_t>(others - hops.begin()) - first;
    paths.insert(paths.end(), count, static_cast<int>(count));
    ++senders[hops[first].receiver];
  }

  const auto busy_us = [&](LinkId l, double of_bytes) {
    return transmission_us(of_bytes, topology.link(l).bandwidth_GBps);
  };
  std::vector<double> load_us(topology.num_links(), 0.0);  // by class
  const auto load_of = [&](LinkId l) -> double& { return load_us[index(class_of_link[l.index()])]; };
  for (std::size_t h = 0; h < hops.size(); ++h) {
    const auto& [hop, receiver] = hops[h];
    const double part = lacking_bytes[receiver] / (senders[receiver] * paths[h]);
    for (const HopLink& on : hop->links) load_of(on.link) += busy_us(on.link, part);
  }
  for (std::size_t h = 0; h < hops.size(); ++h) {
    const Hop& hop = *hops[h].hop;
    if (!has_one_link_in(hop)) continue;
    const double own_us = busy_us(hop.links.back().link, lacking_bytes[hops[h].receiver]);
    const double least_us = std::max((1 + kRounding) * own_us, hop.duration_us(bytes));
    crowded[h] =
        std::ranges::any_of(hop.links, [&](const HopLink& on) { return load_of(on.link) > least_us; }) ? 1
                                                                                                       : 0;
  }
  return crowded;
}

std::vector<char> crowded_hops(const Topology& topology, const HopTable& hops,
                               std::span<const double> lacking_bytes, double bytes) {
  std::vector<HopUse> uses;
  for (const Hop& hop : hops.hops()) uses.push_back({&hop, hop.dst.index()});
  std::vector<int> own_class(topology.num_links());
  std::iota(own_class.begin(), own_class.end(), 0);
  return crowded_hops(topology, uses, own_class, lacking_bytes, bytes);
}

}  // namespace rondo
