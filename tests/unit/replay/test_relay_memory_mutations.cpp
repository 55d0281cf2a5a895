#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "rondo/core/generators.hpp"
#include "rondo/core/random.hpp"
#include "rondo/core/replay.hpp"
#include "sequential_scheduler.hpp"

/// Less memory than a schedule takes at one of its relays is always found (rule 12).
namespace rondo::test_relay_memory_mutations {
namespace {

constexpr double kSlackUs = 1e-6;

Demand exchange_in_group(const Topology& topology, int chunks, Random& random) {
  std::vector<GpuId> all;
  for (std::size_t g = 0; g < topology.num_gpus(); ++g) all.emplace_back(g);
  random.shuffle(std::span(all));
  all.resize(3);
  std::ranges::sort(all);
  return make_demand(Collective::alltoall, 3e6, topology.num_gpus(), chunks, GpuId{0}, {.group = all});
}

/// By the definition: at each begin of a stay, what is there. Each GPU gets a chunk once here.
std::map<int, double> most_held(const Topology& topology, const Demand& demand, const Schedule& schedule) {
  struct Stay {
    double from_us, to_us, bytes;
  };
  std::map<int, std::vector<Stay>> stays;
  for (const Send& in : schedule.sends) {
    const GpuId gpu = topology.gpu_of(topology.link(in.link).dst);
    if (gpu == demand.origin(in.chunk) || gpu == demand.destinations(in.chunk).front()) continue;
    Stay stay{in.start_us + topology.link(in.link).latency_us, in.arrival_us, demand.bytes(in.chunk)};
    for (const Send& out : schedule.sends) {
      if (out.chunk == in.chunk && topology.link(out.link).src == topology.link(in.link).dst)
        stay.to_us = std::max(stay.to_us, out.end_us);
    }
    stays[gpu.value].push_back(stay);
  }
  std::map<int, double> most;
  for (const auto& [gpu, of_gpu] : stays) {
    for (const Stay& begin : of_gpu) {
      double there = 0;
      for (const Stay& stay : of_gpu) {
        if (stay.from_us <= begin.from_us + kSlackUs && stay.to_us > begin.from_us + kSlackUs)
          there += stay.bytes;
      }
      most[gpu] = std::max(most[gpu], there);
    }
  }
  return most;
}

Topology with_memory(const Topology& topology, int gpu, double bytes) {
  TopologyData data = topology.data();
  data.nodes[topology.node_of(GpuId(gpu)).index()].relay_bytes = bytes;
  return Topology(std::move(data));
}

TEST(RelayMemoryMutations, LessThanWhatIsHeldIsRefused) {
  Random random(12);
  const std::vector<Topology> fabrics = {generate_topology("ring", {{"gpus", "6"}}),
                                         generate_topology("mesh", {{"dims", "3x3"}}),
                                         generate_topology("torus", {{"dims", "3x4"}})};
  int refused = 0;
  for (std::size_t i = 0; refused < 1000; ++i) {
    const Topology& topology = fabrics[i % fabrics.size()];
    const Demand demand = exchange_in_group(topology, static_cast<int>(1 + i % 3), random);
    const Schedule schedule = sequential_schedule(topology, demand, random);
    for (const auto& [gpu, bytes] : most_held(topology, demand, schedule)) {
      const Topology enough = with_memory(topology, gpu, bytes);
      const ReplayResult valid = replay(enough, demand, schedule.sends);
      ASSERT_TRUE(valid.valid()) << *valid.violation;
      const double less = bytes * (1 - 1e-6 - 0.999 * random.unit());
      const Topology little = with_memory(topology, gpu, less);
      const ReplayResult broken = replay(little, demand, schedule.sends);
      ASSERT_FALSE(broken.valid()) << less << " of " << bytes << " bytes";
      ASSERT_NE(broken.violation->find("rule 12"), std::string::npos) << *broken.violation;
      ASSERT_NE(broken.violation->find("GPU " + std::to_string(gpu)), std::string::npos) << *broken.violation;
      ++refused;
    }
  }
}

}  // namespace
}  // namespace rondo::test_relay_memory_mutations
