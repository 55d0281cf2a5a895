#include "rondo/core/generators.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

#include "generator_families.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/random.hpp"

namespace rondo {

const std::vector<TopologyGenerator>& topology_generators() {
  static const std::vector<TopologyGenerator> families = all_families();
  return families;
}

Topology generate_topology(const std::string& family, const std::map<std::string, std::string>& values) {
  std::string known;
  for (const TopologyGenerator& generator : topology_generators()) {
    if (generator.name == family) return generator.generate(values);
    known += fmt::format("{}{}", known.empty() ? "" : ", ", generator.name);
  }
  throw Error(ExitCode::usage, fmt::format("unknown family of topologies '{}'; known are {}", family, known));
}

Topology degrade(const Topology& topology, double fraction, double factor, std::uint64_t seed) {
  return degrade(topology, fraction, factor, factor, seed);
}

Topology degrade(const Topology& topology, double fraction, double least, double most, std::uint64_t seed) {
  if (!(fraction >= 0 && fraction <= 1)) {
    throw Error(ExitCode::usage, fmt::format("the degraded fraction is {}; it has to be 0 to 1", fraction));
  }
  for (const double factor : {least, most}) {
    if (!(factor > 0 && factor <= 1)) {
      throw Error(
          ExitCode::usage,
          fmt::format("the factor of degraded links is {}; it has to be above 0 and at most 1", factor));
    }
  }
  if (least > most) {
    throw Error(
        ExitCode::usage,
        fmt::format("the factors of degraded links are {} to {}; write the lesser first", least, most));
  }
  TopologyData data = topology.data();
  const auto rounded =
      static_cast<std::size_t>(std::lround(fraction * static_cast<double>(data.links.size())));
  const std::size_t count = std::min(data.links.size(), fraction > 0 ? std::max<std::size_t>(rounded, 1) : 0);
  if (count == 0) return topology;

  std::vector<std::size_t> order(data.links.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  Random random(seed);
  random.shuffle(std::span(order));
  constexpr std::uint64_t kSteps = 1'000'000;
  for (std::size_t i = 0; i < count; ++i) {
    const double share = least < most ? static_cast<double>(random.below(kSteps + 1)) / kSteps : 0;
    scale_bandwidth(data.links[order[i]], least + share * (most - least));
  }
  data.name += "-degraded";
  const std::string factors = least < most ? fmt::format("{} to {}", least, most) : fmt::format("{}", least);
  data.source +=
      fmt::format("; {} of {} links at {} of their bandwidth (seed {})", count, order.size(), factors, seed);
  return Topology(std::move(data));
}

Topology without_links_between(const Topology& topology, NodeId a, NodeId b) {
  TopologyData data = topology.data();
  std::vector<LinkId> now(data.links.size());  // per link of before; invalid: gone
  std::vector<Link> kept;
  for (std::size_t l = 0; l < data.links.size(); ++l) {
    const Link& link = data.links[l];
    if ((link.src == a && link.dst == b) || (link.src == b && link.dst == a)) continue;
    now[l] = LinkId{kept.size()};
    kept.push_back(link);
  }
  const auto called = [&](NodeId n) {
    const std::string& name = topology.node(n).name;
    return name.empty() ? fmt::format("node {}", n.value) : name;
  };
  const std::string ends = fmt::format("{} and {}", called(a), called(b));
  if (kept.size() == data.links.size())
    throw Error(ExitCode::usage, fmt::format("no link joins {}; name two nodes that one does", ends));
  data.links = std::move(kept);
  for (SharedBandwidth& group : data.shared_bandwidth) {
    for (LinkId& l : group.links) l = now[l.index()];
    std::erase_if(group.links, [](LinkId l) { return !l.valid(); });
  }
  std::erase_if(data.shared_bandwidth, [](const SharedBandwidth& group) { return group.links.empty(); });
  data.name += "-damaged";
  data.source += fmt::format("; without the links between {}", ends);
  return Topology(std::move(data));
}

}  // namespace rondo
