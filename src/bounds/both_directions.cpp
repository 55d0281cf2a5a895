#include "both_directions.hpp"

#include <set>
#include <utility>

#include "rondo/core/transposition.hpp"

namespace rondo {
std::vector<GpuId> representatives(const Topology& topology, const Symmetry& symmetry,
                                   const std::vector<char>& flags) {
  std::set<int> orbits;
  std::vector<GpuId> gpus;
  for (std::size_t g = 0; g < topology.num_gpus(); ++g) {
    const int orbit = symmetry.node_orbit[topology.node_of(GpuId(g)).index()];
    if (flags[g] && orbits.insert(orbit).second) gpus.emplace_back(g);
  }
  return gpus;
}

std::optional<LowerBound> searched_in_both_directions(
    const Topology& topology, const Demand& demand, const Symmetry& symmetry,
    const std::vector<NodeSet>& cuts, double least_us,
    const std::function<std::optional<LowerBound>(const OneSidedTask&)>& search) {
  std::vector<char> sends(topology.num_gpus(), 0);
  std::vector<char> wants(topology.num_gpus(), 0);
  for (const Contribution& part : demand.contributions()) {
    for (const GpuId g : part.all_sources()) sends[g.index()] = 1;
    for (const GpuId g : part.destinations) wants[g.index()] = 1;
  }
  std::optional<LowerBound> best =
      search({topology, demand, cuts, representatives(topology, symmetry, wants), least_us});
  if (!demand.is_unicast() || !is_transposable(topology, demand)) return best;
  std::vector<NodeSet> complements = cuts;
  for (NodeSet& set : complements) {
    for (char& flag : set) flag = flag ? 0 : 1;
  }
  std::optional<LowerBound> of_source =
      search({transposed(topology), transposed(demand), complements,
              representatives(topology, symmetry, sends), best ? best->us : least_us, true});
  if (!of_source) return best;
  of_source->certificate = transposed(std::move(of_source->certificate));
  return of_source;
}

}  // namespace rondo
