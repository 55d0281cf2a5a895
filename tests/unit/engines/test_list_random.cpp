// Property: whatever the topology and the demand, what list scheduling makes passes the replay.

#include <gtest/gtest.h>

#include "rondo/core/random.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/engines/engines.hpp"

namespace rondo::test_list_random {
namespace {

/// A strongly connected ring over all nodes, chords besides, switches of every kind, links that share
/// bandwidth.
Topology random_fabric(Random& random) {
  TopologyData data{"random", ""};
  const std::size_t gpus = 2 + random.below(6);
  const std::size_t switches = random.below(4);
  for (std::size_t n = 0; n < gpus + switches; ++n) {
    Node node;
    if (n >= gpus) {
      node.kind = NodeKind::switch_;
      node.forwarding = random.below(2) == 0 ? Forwarding::cut_through : Forwarding::store_and_forward;
      node.multicast = random.below(2) == 0;
    }
    data.nodes.push_back(node);
  }
  std::vector<std::size_t> ring(data.nodes.size());
  for (std::size_t n = 0; n < ring.size(); ++n) ring[n] = n;
  random.shuffle(std::span(ring));
  auto add_link = [&](std::size_t a, std::size_t b) {
    const double bandwidths[] = {1, 2.5, 12.5, 25, 50};
    const double latencies[] = {0, 0.35, 0.7, 1.3};
    data.links.push_back({NodeId{a}, NodeId{b}, bandwidths[random.below(5)], latencies[random.below(4)]});
  };
  for (std::size_t n = 0; n < ring.size(); ++n) add_link(ring[n], ring[(n + 1) % ring.size()]);
  for (std::size_t chords = random.below(2 * ring.size()); chords > 0; --chords) {
    const std::size_t a = random.below(ring.size());
    const std::size_t b = random.below(ring.size());
    if (a != b) add_link(a, b);
  }
  if (random.below(2) == 0) {
    const LinkId first{random.below(data.links.size())};
    const LinkId second{(first.index() + 1) % data.links.size()};
    data.shared_bandwidth.push_back({"bus", {first, second}, 50});
  }
  return Topology(std::move(data));
}

Demand random_demand(const Topology& topology, Random& random) {
  const std::size_t gpus = topology.num_gpus();
  const int chunks = 1 + static_cast<int>(random.below(4));
  const Collective named[] = {Collective::allgather, Collective::alltoall, Collective::broadcast,
                              Collective::scatter, Collective::gather};
  const std::size_t kind = random.below(7);
  const double bytes = static_cast<double>(random.below(2) == 0 ? 100 : 10'000'000);
  if (kind < 5) return make_demand(named[kind], bytes, gpus, chunks);
  std::vector<Contribution> contributions;
  double total = 0;
  for (std::size_t i = 0; i < 1 + random.below(5); ++i) {
    Contribution c{GpuId{random.below(gpus)}, bytes * static_cast<double>(1 + random.below(3)), {}, 0};
    if (random.below(3) == 0) c.ready_us = 10.0 * random.unit();
    for (std::size_t g = 0; g < gpus; ++g) {
      if (GpuId{g} != c.origin && random.below(2) == 0) c.destinations.push_back(GpuId{g});
    }
    if (c.destinations.empty()) c.destinations.push_back(GpuId{(c.origin.index() + 1) % gpus});
    total += c.bytes;
    contributions.push_back(std::move(c));
  }
  return Demand(Collective::custom, total, gpus, std::move(contributions), chunks);
}

TEST(ListRandom, EveryScheduleReplays) {
  Random random(20240804);
  for (int instance = 0; instance < 400; ++instance) {
    const auto topology = std::make_shared<const Topology>(random_fabric(random));
    const Demand demand = random_demand(*topology, random);
    const PreparedEngine engine = prepare_list({topology, demand}, {}, {});
    for (const std::string& policy : list_policies()) {
      EngineOptions options;
      options.policy = policy;
      options.seed = static_cast<std::uint64_t>(instance);
      const EngineResult result = engine(demand, options);
      const ReplayResult replayed = replay(*topology, demand, result.schedule->sends);
      ASSERT_TRUE(replayed.valid()) << "instance " << instance << ", " << policy << ": "
                                    << *replayed.violation;
      ASSERT_TRUE(times_equal(replayed.finish_us, result.schedule->finish_us)) << "instance " << instance;
    }
  }
}

}  // namespace
}  // namespace rondo::test_list_random
