#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "replay_by_parts.hpp"
#include "rondo/core/generators.hpp"
#include "rondo/core/random.hpp"
#include "sequential_scheduler.hpp"

/// Every single change of a valid schedule that changes its meaning is found.
namespace rondo::test_replay_mutations {
namespace {

Topology with_buffers(const Topology& topology) {
  TopologyData data = with_switch_forwarding(topology, Forwarding::store_and_forward).data();
  for (Node& node : data.nodes) {
    if (node.kind != NodeKind::switch_) continue;
    node.buffer_bytes = 1e9;
    node.multicast =
        false;  // a switch that copied from its buffer could make up for an arrival that is missing
  }
  return Topology(std::move(data));
}

std::vector<Topology> fabrics() {
  const Topology star = generate_topology("star", {{"gpus", "3"}, {"intra", "switch"}});
  const Topology rails = generate_topology("rails", {{"gpus", "3"}});
  return {generate_topology("full", {{"gpus", "5"}}),
          generate_topology("ring", {{"gpus", "6"}}),
          generate_topology("mesh", {{"dims", "3x3"}}),
          star,
          with_switch_forwarding(star, Forwarding::store_and_forward),
          with_buffers(star),
          rails,
          with_switch_forwarding(rails, Forwarding::store_and_forward),
          with_buffers(rails),
          generate_topology("dragonfly",
                            {{"groups", "3"}, {"routers", "2"}, {"hosts", "1"}, {"multicast", "false"}})};
}

struct Case {
  Topology topology;
  Demand demand;
};

std::vector<Case> cases() {
  std::vector<Case> result;
  for (const Topology& topology : fabrics()) {
    for (const Collective collective : {Collective::allgather, Collective::alltoall, Collective::broadcast}) {
      for (const int chunks : {1, 3}) {
        result.push_back({topology, make_demand(collective, 1e6, topology.num_gpus(), chunks)});
      }
    }
  }
  return result;
}

bool accepted(const Case& on, const Schedule& schedule) {
  const ReplayResult result = replay_both_ways(on.topology, on.demand, schedule.sends);
  return result.valid() && times_equal(result.finish_us, schedule.finish_us);
}

enum class Mutation {
  start_alone,  // the times no longer fit
  end_alone,
  arrival_alone,
  too_early,    // the times fit, the chunk is not there yet
  dropped,      // every send of the scheduler is needed
  duplicated,   // onto the link that it occupies
  redirected,   // to another far end: the true one goes without
  other_chunk,  // likewise
  finish,
  count
};

/// Far above the tolerance, which is below 1e-5 us for the times here, and positive.
double noticeable_us(Random& random) {
  return 1e-3 + 10 * random.unit() * random.unit();
}
double either_path(Random& random, double value) {
  return random.below(2) == 0 ? value : -value;
}

/// From when the near end of send s can send: the arrival that it rests on. All schedules here bring a chunk
/// to a GPU once; of several arrivals at a switch the last one before s counts.
double cause_us(const Case& on, const Schedule& schedule, const Send& s) {
  const NodeId n = on.topology.link(s.link).src;
  double cause = on.demand.ready_us(s.chunk);
  for (const Send& other : schedule.sends) {
    const Link& link = on.topology.link(other.link);
    if (other.chunk != s.chunk || link.dst != n) continue;
    const bool cuts_through =
        !on.topology.is_gpu(n) && on.topology.node(n).forwarding == Forwarding::cut_through;
    const double time = cuts_through ? other.start_us + link.latency_us : other.arrival_us;
    if (time <= s.start_us + 1e-6) cause = std::max(cause, time);
  }
  return cause;
}

/// Returns nothing where this schedule offers nothing to change in this way.
std::optional<Schedule> mutate(const Case& on, const Schedule& original, Mutation mutation, Random& random) {
  Schedule result = original;
  const std::size_t which = random.below(result.sends.size());
  Send& send = result.sends[which];
  switch (mutation) {
    case Mutation::start_alone:
      send.start_us += either_path(random, noticeable_us(random));
      break;
    case Mutation::end_alone:
      send.end_us += either_path(random, noticeable_us(random));
      break;
    case Mutation::arrival_alone:
      send.arrival_us += either_path(random, noticeable_us(random));
      break;
    case Mutation::too_early: {
      const double shift = send.start_us - cause_us(on, original, send) + noticeable_us(random);
      send.start_us -= shift;
      send.end_us -= shift;
      send.arrival_us -= shift;
      break;
    }
    case Mutation::dropped:
      result.sends.erase(result.sends.begin() + static_cast<std::ptrdiff_t>(which));
      break;
    case Mutation::duplicated: {
      Send copy = send;
      copy.chunk = ChunkId(random.below(on.demand.num_chunks()));
      result.sends.push_back(copy);
      break;
    }
    case Mutation::redirected: {
      const LinkId to(random.below(on.topology.num_links()));
      if (on.topology.link(to).dst == on.topology.link(send.link).dst) return std::nullopt;
      send.link = to;
      break;
    }
    case Mutation::other_chunk: {
      const ChunkId to(random.below(on.demand.num_chunks()));
      if (to == send.chunk) return std::nullopt;
      send.chunk = to;
      break;
    }
    case Mutation::finish:
      result.finish_us += either_path(random, noticeable_us(random));
      break;
    case Mutation::count:
      break;
  }
  return result;
}

TEST(ReplayMutations, ValidSchedulesAreAcceptedInAnyOrder) {
  Random random(1);
  for (const Case& on : cases()) {
    Schedule schedule = sequential_schedule(on.topology, on.demand, random);
    for (int repeat = 0; repeat < 2; ++repeat) {
      const ReplayResult result = replay(on.topology, on.demand, schedule.sends);
      EXPECT_TRUE(result.valid()) << on.topology.name() << ": " << result.violation.value_or("");
      EXPECT_NEAR(result.finish_us, schedule.finish_us, 1e-9 * schedule.finish_us);
      random.shuffle(std::span(schedule.sends));
    }
  }
}

TEST(ReplayMutations, EveryChangeOfMeaningIsRejected) {
  constexpr int kWanted = 2000;
  const std::vector<Case> all = cases();
  std::map<Mutation, int> rejected;
  int total = 0;
  Random random(2024);
  for (std::size_t i = 0; total < kWanted; ++i) {
    const Case& on = all[i % all.size()];
    const Schedule valid = sequential_schedule(on.topology, on.demand, random);
    for (int m = 0; m < static_cast<int>(Mutation::count); ++m) {
      const auto mutation = static_cast<Mutation>(m);
      const std::optional<Schedule> changed = mutate(on, valid, mutation, random);
      if (!changed) continue;
      ASSERT_FALSE(accepted(on, *changed)) << on.topology.name() << ", mutation " << m << ", schedule " << i;
      ++rejected[mutation];
      ++total;
    }
  }
  ASSERT_EQ(rejected.size(), static_cast<std::size_t>(Mutation::count));
  for (const auto& [mutation, count] : rejected) EXPECT_GE(count, 100) << static_cast<int>(mutation);
}

TEST(ReplayMutations, TheViolationDoesNotDependOnTheOrderOfSends) {
  Random random(7);
  for (const Case& on : cases()) {
    const Schedule valid = sequential_schedule(on.topology, on.demand, random);
    const std::optional<Schedule> changed = mutate(on, valid, Mutation::too_early, random);
    ASSERT_TRUE(changed);
    std::vector<Send> sends = changed->sends;
    const bool negative =
        std::any_of(sends.begin(), sends.end(), [](const Send& s) { return s.start_us < 0; });
    if (negative) continue;  // malformed: reported as met
    const ReplayResult first = replay(on.topology, on.demand, sends);
    random.shuffle(std::span(sends));
    EXPECT_EQ(replay(on.topology, on.demand, sends).violation, first.violation);
  }
}

}  // namespace
}  // namespace rondo::test_replay_mutations
