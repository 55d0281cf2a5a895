#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "mutated_time_cut.hpp"
#include "rondo/bounds/bounds.hpp"
#include "rondo/bounds/time_cuts.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/random.hpp"
#include "rondo/core/verify.hpp"
#include "rondo/pipeline/registry.hpp"
#include "rondo/pipeline/synthesize.hpp"
#include "topologies.hpp"

/// Lower bounds against schedules where latency and bandwidth mix, on random fabrics. Others than those of
/// the test suite: --gtest_random_seed=1, 2 and so on.
namespace rondo::test_bounds_hold {
namespace {

/// 4 to 6 GPUs on a one-way ring with more links, perhaps over a switch, of figures without a common unit.
std::shared_ptr<const Topology> random_fabric(Random& random) {
  const std::size_t gpus = 4 + random.below(3);
  std::vector<Node> nodes(gpus);
  if (random.unit() < 0.4) {
    nodes.push_back(network_switch());
    nodes.back().multicast = random.unit() < 0.5;
  }
  const bool has_costs = random.unit() < 0.2;
  constexpr std::array kGBps = {5.0, 12.5, 25.0, 50.0};
  std::vector<Link> links;
  for (std::size_t a = 0; a < nodes.size(); ++a) {
    for (std::size_t b = 0; b < nodes.size(); ++b) {
      const bool on_ring = a < gpus && b == (a + 1) % gpus;
      if (a == b || (!on_ring && random.unit() > 0.35)) continue;
      Link next{NodeId(a), NodeId(b), kGBps[random.below(kGBps.size())], 0.2 + 2 * random.unit()};
      if (has_costs) next.message_us = 0.3 * random.unit();
      links.push_back(next);
    }
  }
  std::vector<SharedBandwidth> shared;
  if (random.unit() < 0.2) {
    std::vector<LinkId> of_first;
    for (std::size_t l = 0; l < links.size(); ++l) {
      if (links[l].src == NodeId{0}) of_first.emplace_back(l);
      if (links[l].src == NodeId{0}) links[l].latency_us = 0.7;  // sums are scheduled backwards
    }
    shared.push_back({"nic", of_first, 50});
  }
  return fabric(nodes, links, shared);
}

TEST(BoundsHold, NoScheduleEndsBeforeThem) {
  // 0 unless --gtest_random_seed says otherwise.
  Random random(static_cast<std::uint64_t>(GTEST_FLAG_GET(random_seed)));
  const std::array collectives = {Collective::allgather, Collective::reduce_scatter, Collective::broadcast,
                                  Collective::gather,    Collective::scatter,        Collective::allreduce,
                                  Collective::alltoall,  Collective::reduce};
  int time_cuts = 0;
  int near = 0;
  constexpr int kFabrics = 10;
  for (int i = 0; i < kFabrics; ++i) {
    const auto topology = random_fabric(random);
    // Most often what time cuts are made for.
    const Collective collective =
        random.unit() < 0.5 ? Collective::allgather : collectives[random.below(collectives.size())];
    const Demand demand =
        make_demand(collective, 10e3 * static_cast<double>(1 + random.below(30)), topology->num_gpus(), 1);
    SolveOptions options;
    options.improve_work = 2e4;
    const SynthesisResult result = synthesize({topology, demand, options}, {*make_local_communicator()});
    verify(result.proven);
    EXPECT_GE(result.gap, -1e-9) << i;
    if (certificate_kind(result.proven.lower_bound->certificate) == "time_cut") ++time_cuts;
    if (result.gap < 0.05) ++near;
  }
  // The bounds would hold trivially if they were small.
  EXPECT_GE(time_cuts, kFabrics / 4);
  EXPECT_GE(near, kFabrics / 4);
}

/// How many of 100 changed certificates hold; the strongest one found is what is changed.
int accepted_changes(const Topology& topology, const Demand& demand, LowerBound strongest, double finish_us,
                     Random& random) {
  int accepted = 0;
  for (int i = 0; i < 100; ++i) {
    const TimeCutCertificate changed =
        mutated(std::get<TimeCutCertificate>(strongest.certificate), random, topology.num_gpus());
    try {
      const double us = sound_bound_of(topology, demand, changed);
      EXPECT_LE(us, finish_us * (1 + 1e-9));
      ++accepted;
      if (us > strongest.us) strongest = {us, changed};
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::bad_data);
    }
  }
  return accepted;
}

TEST(BoundsHold, NoScheduleOfASumEndsBeforeCutsThatCountContributions) {
  Random random(static_cast<std::uint64_t>(GTEST_FLAG_GET(random_seed)));
  int found = 0;
  int accepted = 0;
  constexpr int kFabrics = 4;
  for (int i = 0; i < kFabrics; ++i) {
    const auto topology = random_fabric(random);
    const Demand demand = make_demand(Collective::allreduce, 2e3 * static_cast<double>(1 + random.below(30)),
                                      topology->num_gpus(), 1);
    SolveOptions options;
    options.improve_work = 2e4;
    const SynthesisResult result = synthesize({topology, demand, options}, {*make_local_communicator()});
    verify(result.proven);
    const double finish_us = result.proven.schedule.finish_us;
    const auto bound = find_counted_cut(*topology, demand, trivial_symmetry(*topology), {}, 0.5 * finish_us);
    if (!bound) continue;
    ++found;
    EXPECT_LE(bound->us, finish_us * (1 + 1e-9)) << i;
    accepted += accepted_changes(*topology, demand, *bound, finish_us, random);
  }
  EXPECT_GE(found, kFabrics / 2);
  EXPECT_GE(accepted, 40);
}

/// 4 or 5 GPUs on a one-way ring with more links; 10 kB take 1 or 2 us on them, and 0 to 2 us later they are
/// there.
std::shared_ptr<const Topology> random_fabric_on_grid(Random& random) {
  const std::size_t gpus = 4 + random.below(2);
  constexpr std::array kGBps = {10.0, 5.0};
  std::vector<Link> links;
  for (std::size_t a = 0; a < gpus; ++a) {
    for (std::size_t b = 0; b < gpus; ++b) {
      if (a == b || (b != (a + 1) % gpus && random.unit() > 0.35)) continue;
      links.push_back({NodeId(a), NodeId(b), kGBps[random.below(2)], static_cast<double>(random.below(3))});
    }
  }
  return fabric(std::vector<Node>(gpus), links, {});
}

// All times are whole microseconds, so that no schedule of whole chunks ends before the best one on a grid of
// them, which an integer program finds.
TEST(BoundsHold, NoneIsAboveTheOptimumOfWholeChunks) {
  Random random(static_cast<std::uint64_t>(GTEST_FLAG_GET(random_seed)));
  const std::array collectives = {Collective::allgather, Collective::broadcast, Collective::scatter,
                                  Collective::gather, Collective::alltoall};
  int optima = 0;
  int near = 0;
  constexpr int kFabrics = 10;
  for (int i = 0; i < kFabrics; ++i) {
    const auto topology = random_fabric_on_grid(random);
    const Collective collective = collectives[static_cast<std::size_t>(i) % collectives.size()];
    const Demand one = make_demand(collective, 1e6, topology->num_gpus(), 1);
    const int chunks = collective == Collective::alltoall ? 1 : 2;
    const double bytes = 1e6 / one.bytes(ChunkId{0}) * 10e3 * chunks;
    SolveOptions options;
    options.engine = "milp";
    options.chunks = chunks;
    options.epochs = {.rule = EpochRule::fixed, .tau_us = 1};
    const Demand demand = make_demand(collective, bytes, topology->num_gpus(), chunks);
    const SynthesisResult result = synthesize({topology, demand, options}, {*make_local_communicator()});
    verify(result.proven);
    if (result.remarks.empty() || !result.remarks.front().starts_with("optimal")) continue;
    ++optima;
    for (const LowerBound& bound : lower_bounds({topology, demand}, make_toolbox()).all)
      EXPECT_LE(bound.us, result.proven.schedule.finish_us * (1 + 1e-9)) << i;
    if (result.gap < 0.2) ++near;
  }
  EXPECT_GE(optima, kFabrics / 2);
  EXPECT_GE(near, kFabrics / 4);
}

/// Pairs and multicasts of other sizes each, some of them later.
Demand random_mix(std::size_t gpus, Random& random) {
  std::vector<Contribution> parts;
  double sum = 0;
  for (std::size_t i = 0; i < 3 + random.below(3); ++i) {
    Contribution part{.origin = GpuId(random.below(gpus)),
                      .bytes = 20e3 * static_cast<double>(1 + random.below(30))};
    const std::size_t wanted = random.unit() < 0.5 ? 1 : 2 + random.below(gpus - 2);
    for (std::size_t k = 1; k <= wanted; ++k)
      part.destinations.emplace_back((part.origin.index() + k) % gpus);
    if (random.unit() < 0.3) part.ready_us = 30 * random.unit();
    sum += part.bytes;
    parts.push_back(std::move(part));
  }
  return {Collective::custom, sum, gpus, std::move(parts), 1};
}

TEST(BoundsHold, NoScheduleOfAMixEndsBeforeThem) {
  Random random(static_cast<std::uint64_t>(GTEST_FLAG_GET(random_seed)));
  int metrics = 0;
  int near = 0;
  constexpr int kFabrics = 10;
  for (int i = 0; i < kFabrics; ++i) {
    const auto topology = random_fabric(random);
    const Demand demand = random_mix(topology->num_gpus(), random);
    SolveOptions options;
    options.improve_work = 2e4;
    const SynthesisResult result = synthesize({topology, demand, options}, {*make_local_communicator()});
    verify(result.proven);
    EXPECT_GE(result.gap, -1e-9) << i;
    // All that are derived, also where another one is better.
    const Bounds bounds = lower_bounds({topology, demand}, make_toolbox());
    for (const LowerBound& bound : bounds.all) {
      EXPECT_LE(bound.us, result.proven.schedule.finish_us * (1 + 1e-9)) << i;
      if (certificate_kind(bound.certificate) == "metric" && bound.us > 0.9 * bounds.best().us) ++metrics;
    }
    if (result.gap < 0.05) ++near;
  }
  EXPECT_GE(metrics, kFabrics / 4);
  EXPECT_GE(near, kFabrics / 4);
}

// Pieces in any order, which are one datum, or a chunk each.
TEST(CustomDemand, EndsAsTheCollectiveThatItIs) {
  const auto topology = generated("torus", {{"dims", "3x3"}});
  for (const Collective collective : {Collective::allgather, Collective::broadcast, Collective::scatter}) {
    const Demand named = make_demand(collective, 9e6, 9, 1);
    std::vector<Contribution> reversed = named.contributions();
    std::ranges::reverse(reversed);
    std::vector<Contribution> halves;
    for (Contribution part : reversed) {
      part.bytes /= 2;
      halves.insert(halves.end(), 2, part);
    }
    double sum = 0;
    for (const Contribution& part : reversed) sum += part.bytes;
    SolveOptions options;
    options.improve_work = 2e4;
    const SynthesisResult expected = synthesize({topology, named, options}, {*make_local_communicator()});
    for (const auto& parts : {reversed, halves}) {
      const Demand custom(Collective::custom, sum, 9, parts, 1);
      const SynthesisResult result = synthesize({topology, custom, options}, {*make_local_communicator()});
      verify(result.proven);
      EXPECT_EQ(result.proven.demand.collective(), Collective::custom);
      EXPECT_FALSE(difference(custom, result.proven.demand));
      EXPECT_DOUBLE_EQ(result.proven.schedule.finish_us, expected.proven.schedule.finish_us);
    }
  }
}

}  // namespace
}  // namespace rondo::test_bounds_hold
