#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fabrics.hpp"
#include "rondo/bounds/cuts.hpp"
#include "rondo/core/certificate.hpp"
#include "rondo/core/generators.hpp"
#include "rondo/core/units.hpp"

namespace rondo::test_cuts {
namespace {

double bandwidth_bound(const Topology& topology, const Demand& demand, const NodeSet& inside) {
  double leaving_GBps = 0;
  for (const Link& link : topology.links()) {
    if (inside[link.src.index()] && !inside[link.dst.index()]) leaving_GBps += link.bandwidth_GBps;
  }
  const double bytes = bytes_leaving(topology, demand, inside);
  return bytes > 0 && leaving_GBps > 0 ? transmission_us(bytes, leaving_GBps) : 0;
}

/// Over all sets of nodes.
double brute_force_bound(const Topology& topology, const Demand& demand) {
  double best = 0;
  for (std::size_t set = 1; set + 1 < std::size_t{1} << topology.num_nodes(); ++set) {
    NodeSet inside(topology.num_nodes(), 0);
    for (std::size_t n = 0; n < inside.size(); ++n) inside[n] = (set >> n) & 1 ? 1 : 0;
    best = std::max(best, bandwidth_bound(topology, demand, inside));
  }
  return best;
}

/// Twelve nodes at most, of several kinds, links damaged at random.
std::vector<Topology> damaged_fabrics() {
  std::vector<Topology> fabrics;
  const std::vector<std::pair<std::string, std::map<std::string, std::string>>> specs = {
      {"torus", {{"dims", "3x3"}}},
      {"star", {{"chassis", "2"}, {"gpus", "4"}}},
      {"rails", {{"boxes", "2"}, {"rails", "2"}, {"gpus", "4"}}},
      {"hypercube", {{"dimensions", "3"}}}};
  for (const auto& [family, values] : specs) {
    for (std::uint64_t seed = 0; seed < 4; ++seed)
      fabrics.push_back(degrade(generate_topology(family, values), 0.3, 0.2, 0.9, seed));
  }
  return fabrics;
}

TEST(Cuts, OfAnAllGatherTheNarrowestOfAllIsFound) {
  for (const Topology& topology : damaged_fabrics()) {
    const Demand demand = make_demand(Collective::allgather, 1e9, topology.num_gpus(), 1);
    const std::vector<Cut> cuts =
        find_cuts(topology, demand, find_symmetry(topology, demand), CutEffort::all);
    EXPECT_NEAR(cuts.front().bandwidth_bound_us / brute_force_bound(topology, demand), 1, 1e-9)
        << topology.name();
  }
}

/// Pairs of different sizes, some of none.
Demand uneven_pairs(const Topology& topology) {
  std::vector<Contribution> pairs;
  for (std::size_t a = 0; a < topology.num_gpus(); ++a) {
    for (std::size_t b = 0; b < topology.num_gpus(); ++b) {
      const std::size_t size = (3 * a + 5 * b) % 4;
      if (a != b && size > 0) pairs.push_back({GpuId{a}, 1e6 * static_cast<double>(size), {GpuId{b}}});
    }
  }
  return Demand(Collective::custom, 1e9, topology.num_gpus(), std::move(pairs), 1);
}

TEST(Cuts, FiguresOfUnicastCutsAreThoseOfTheirNodes) {
  for (const Topology& topology : damaged_fabrics()) {
    for (const Demand& demand :
         {make_demand(Collective::alltoall, 1e9, topology.num_gpus(), 1), uneven_pairs(topology)}) {
      const std::vector<Cut> cuts = find_cuts(topology, demand, trivial_symmetry(topology), CutEffort::all);
      ASSERT_FALSE(cuts.empty());
      EXPECT_LE(cuts.front().bandwidth_bound_us, brute_force_bound(topology, demand) * (1 + 1e-9));
      for (const Cut& cut : cuts) {
        EXPECT_NEAR(cut.bytes / bytes_leaving(topology, demand, cut.inside), 1, 1e-12) << topology.name();
        EXPECT_NEAR(cut.bandwidth_bound_us / bandwidth_bound(topology, demand, cut.inside), 1, 1e-12);
      }
    }
  }
}

TEST(Cuts, OfAnAllToAllBetweenTwoChassisTheNarrowestOfAllIsFound) {
  const Topology two = generate_topology("star", {{"chassis", "2"}, {"gpus", "4"}, {"uplinks", "1"}});
  const Demand demand = make_demand(Collective::alltoall, 1e9, two.num_gpus(), 1);
  const std::vector<Cut> cuts = find_cuts(two, demand, find_symmetry(two, demand), CutEffort::simple);
  EXPECT_NEAR(cuts.front().bandwidth_bound_us / brute_force_bound(two, demand), 1, 1e-12);
}

}  // namespace
}  // namespace rondo::test_cuts
