#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "expect_error.hpp"
#include "rondo/core/generators.hpp"
#include "rondo/core/random.hpp"
#include "rondo/core/replay.hpp"
#include "sequential_scheduler.hpp"
#include "sum_schedules.hpp"

/// Times from which data is there, and tenants: what a schedule does not keep to is always found.
namespace rondo::test_sharing_mutations {
namespace {

constexpr double kNotYet = std::numeric_limits<double>::infinity();

std::vector<Topology> shared_fabrics() {
  return {generate_topology("ring", {{"gpus", "6"}}), generate_topology("mesh", {{"dims", "3x3"}}),
          generate_topology("rails", {{"gpus", "3"}}), generate_topology("star", {{"gpus", "3"}})};
}

/// Two tenants, the second of which starts later; data of the first is ready at times of its own.
Demand shared_demand(std::size_t gpus, Random& random) {
  std::vector<Contribution> parts;
  for (int tenant = 0; tenant < 2; ++tenant) {
    for (int part = 0; part < 5; ++part) {
      const GpuId from(random.below(gpus));
      const GpuId to((from.index() + 1 + random.below(gpus - 1)) % gpus);
      parts.push_back({.origin = from, .bytes = 1e6, .destinations = {to}});
      parts.back().ready_us = tenant == 0 ? 40 * random.unit() : 50;
      parts.back().tenant = tenant;
      parts.back().priority = 1 + 3 * tenant;
    }
  }
  return {Collective::custom, 1e7, gpus, parts, 2};
}

double first_start_us(const Demand& demand, const Schedule& schedule, int contribution) {
  double first_us = kNotYet;
  for (const Send& send : schedule.sends) {
    if (send.chunk.value / demand.chunks_per_contribution() == contribution)
      first_us = std::min(first_us, send.start_us);
  }
  return first_us;
}

Demand with_ready(const Demand& demand, const std::vector<int>& changed, double ready_us) {
  std::vector<Contribution> parts = demand.contributions();
  for (const int part : changed) parts[static_cast<std::size_t>(part)].ready_us = ready_us;
  return {Collective::custom, 1e7, demand.num_gpus(), parts, demand.chunks_per_contribution()};
}

void expect_refused(const Topology& topology, const Demand& demand, const Schedule& schedule) {
  const ReplayResult broken = replay(topology, demand, schedule.sends);
  ASSERT_FALSE(broken.valid());
  ASSERT_NE(broken.violation->find("rule 2"), std::string::npos) << *broken.violation;
}

TEST(SharingMutations, DataThatIsNotReadyAndTenantsThatHaveNotStartedAreRefused) {
  Random random(24);
  const std::vector<Topology> all = shared_fabrics();
  for (int refused = 0; refused < 1000;) {
    const Topology& topology = all[random.below(all.size())];
    const Demand demand = shared_demand(topology.num_gpus(), random);
    const Schedule schedule = sequential_schedule(topology, demand, random);
    ASSERT_TRUE(replay(topology, demand, schedule.sends).valid());
    for (int part = 0; part < 5; ++part) {
      const double first_us = first_start_us(demand, schedule, part);
      ASSERT_TRUE(replay(topology, with_ready(demand, {part}, first_us), schedule.sends).valid());
      expect_refused(topology, with_ready(demand, {part}, first_us + 1e-3 + 10 * random.unit()), schedule);
      ++refused;
    }
    const std::vector<int> second{5, 6, 7, 8, 9};
    double first_us = kNotYet;
    for (const int part : second) first_us = std::min(first_us, first_start_us(demand, schedule, part));
    ASSERT_TRUE(replay(topology, with_ready(demand, second, first_us), schedule.sends).valid());
    expect_refused(topology, with_ready(demand, second, first_us + 1e-3 + 10 * random.unit()), schedule);
    ++refused;
  }
}

TEST(SharingMutations, PartsOfSumsThatAreNotReadyAreRefused) {
  Random random(25);
  for (int refused = 0; refused < 300;) {
    const int gpus = 3 + static_cast<int>(random.below(4));
    const Topology ring = generate_topology("ring", {{"gpus", std::to_string(gpus)}});
    const Demand plain =
        make_demand(Collective::reduce_scatter, 1e6 * gpus, static_cast<std::size_t>(gpus), 1);
    const ProvenSchedule proven = in_rounds(ring, plain, ring_sums(gpus, 1, false));
    ASSERT_TRUE(replay(ring, plain, proven.schedule.sends).valid());
    for (const Send& send : proven.schedule.sends) {
      std::vector<Contribution> parts = plain.contributions();
      Contribution& part = parts[send.chunk.index()];
      const GpuId from = ring.gpu_of(ring.link(send.link).src);
      const auto ready = [&](double us) {
        part.source_ready_us.assign(part.sources.size(), 0);
        const auto source = std::ranges::find(part.sources, from) - part.sources.begin();
        part.source_ready_us[static_cast<std::size_t>(source)] = us;
        const Demand demand(Collective::custom, plain.size_bytes(), plain.num_gpus(), parts, 1);
        return replay(ring, demand, proven.schedule.sends).valid();
      };
      ASSERT_TRUE(ready(send.start_us));
      ASSERT_FALSE(ready(send.start_us + 1e-3 + 10 * random.unit()));
      ++refused;
    }
  }
}

TEST(SharingMutations, TenantsHaveOnePositivePriorityEach) {
  Random random(26);
  for (int i = 0; i < 100; ++i) {
    std::vector<Contribution> parts = shared_demand(6, random).contributions();
    double& priority = parts[random.below(parts.size())].priority;
    priority = i % 4 == 0 ? 0 : i % 4 == 1 ? -random.unit() : priority * (1 + 1e-6 + random.unit());
    EXPECT_THROW(Demand(Collective::custom, 1e7, 6, parts, 2), Error) << priority;
  }
}

}  // namespace
}  // namespace rondo::test_sharing_mutations
