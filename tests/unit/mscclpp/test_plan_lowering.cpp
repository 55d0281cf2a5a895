#include <algorithm>
#include <iostream>

#include "random_plan_run.hpp"
#include "rondo/engines/engine_row.hpp"
#include "rondo/mscclpp/check.hpp"
#include "rondo/mscclpp/plan_files.hpp"
#include "schedules.hpp"

/// Schedules as execution plans of MSCCL++: what is made is right, and damaged it is refused.
namespace rondo {
EngineInfo exchange_engine();
}
namespace rondo::test::test_plan_lowering {
namespace {

using mscclpp::ChannelType;
using mscclpp::Gpu;
using mscclpp::Op;
using mscclpp::Operand;
using mscclpp::OpType;
using mscclpp::Plan;
using mscclpp::ThreadBlock;

Plan planned(const ProvenSchedule& proven, const PlanOptions& options = {}) {
  const Plan plan = lower_to_plan(proven, options);
  EXPECT_EQ(mscclpp::plan_from_json(mscclpp::plan_to_json(plan)), plan);
  return plan;
}

ProvenSchedule schedule_of(const Topology& topology, Collective collective) {
  if (collective->reduces) return combined(topology, collective, 1);
  return scheduled(topology, make_demand(collective, 1e6, topology.num_gpus(), 1));
}

TEST(PlanLowering, EveryFabricAndCollective) {
  const std::vector<Topology> fabrics = {generate_topology("ring", {{"gpus", "8"}}),
                                         generate_topology("full", {{"gpus", "8"}}),
                                         generate_topology("torus", {{"dims", "3x3"}}),
                                         generate_topology("mesh", {{"dims", "3x3"}}),
                                         generate_topology("rails", {{"boxes", "2"}}),
                                         load_topology("dgx1"),
                                         load_topology("amd-1"),
                                         load_topology("ndv2-2")};
  Random random(7);
  for (const Topology& topology : fabrics) {
    for (const Collective collective :
         {Collective::allgather, Collective::reduce_scatter, Collective::allreduce, Collective::alltoall}) {
      SCOPED_TRACE(topology.name() + " " + std::string(to_string(collective)));
      const Plan plan = planned(schedule_of(topology, collective));
      const auto outputs = run_at_random(plan, random);
      ASSERT_TRUE(outputs);
      EXPECT_EQ(run_at_random(plan, random), outputs);
    }
  }
}

TEST(PlanLowering, InPlaceAndRootedOnes) {
  const Topology dgx1 = load_topology("dgx1");
  for (const Collective collective : {Collective::allgather, Collective::broadcast, Collective::allreduce,
                                      Collective::reduce_scatter, Collective::reduce}) {
    SCOPED_TRACE(to_string(collective));
    const Plan plan = planned(schedule_of(dgx1, collective), {.in_place = true});
    EXPECT_TRUE(plan.in_place);
    const mscclpp::CheckResult result = mscclpp::check(plan);
    EXPECT_TRUE(result.valid() && result.knows_result);
    EXPECT_EQ(result.root.has_value(), collective->has_root);
  }
  for (const Collective collective : {Collective::scatter, Collective::gather}) {
    EXPECT_TRUE(mscclpp::check(planned(schedule_of(dgx1, collective))).valid());
  }
}

// GPUs that exchange sums of sums send what they have over ports and get the result into the same place, from
// a sender that does not hear when the port has read it.
TEST(PlanLowering, ResultsLandApartWhereSumsAreStillRead) {
  const auto topology = std::make_shared<const Topology>(load_topology("ndv2-2"));
  const Demand demand = make_demand(Collective::allreduce, 16e6, topology->num_gpus(), 1);
  const EngineResult result = exchange_engine().prepare({topology, demand}, {}, {})(demand, {});
  const ProvenSchedule proven{.topology = *topology, .demand = demand, .schedule = *result.schedule};
  Random random(7);
  for (const bool in_place : {false, true}) {
    const Plan plan = planned(proven, {.in_place = in_place});
    const auto outputs = run_at_random(plan, random);
    ASSERT_TRUE(outputs);
    EXPECT_EQ(run_at_random(plan, random), outputs);
  }
}

TEST(PlanLowering, NodesDecideTheChannels) {
  const ProvenSchedule proven =
      schedule_of(generate_topology("full", {{"gpus", "4"}}), Collective::allgather);
  const Plan one = planned(proven), two = planned(proven, {.gpus_per_node = 2});
  for (int g = 0; g < 4; ++g) {
    const auto i = static_cast<std::size_t>(g);
    EXPECT_EQ(one.gpus[i].peers[0].size(), 6U);  // a channel a connection
    EXPECT_EQ(two.gpus[i].peers[0], (std::vector{g ^ 1, g ^ 1}));
    EXPECT_EQ(two.gpus[i].peers[1].size(), 4U);
  }
}

TEST(PlanLowering, SizesThatAlignmentAndOffsetsAllow) {
  const ProvenSchedule proven =
      schedule_of(generate_topology("full", {{"gpus", "4"}}), Collective::allgather);
  const Plan plan = planned(proven, {.min_bytes = 1024, .max_bytes = 1 << 20});
  EXPECT_EQ(plan.min_bytes, 1024U);
  EXPECT_EQ(plan.max_bytes, 1U << 20);
  const Plan widest = planned(proven);
  EXPECT_EQ(widest.min_bytes, 4U * 16);
  EXPECT_EQ(widest.max_bytes, (std::uint64_t{1} << 32) - 4 * 16);
  EXPECT_THROW(lower_to_plan(proven, {.max_bytes = 32}), Error);
}

TEST(PlanLowering, BeyondACapItIsNamed) {
  const Topology full = generate_topology("full", {{"gpus", "4"}});
  const ProvenSchedule proven = scheduled(full, make_demand(Collective::alltoall, 1e6, 4, 4000));
  try {
    lower_to_plan(proven, {});
    FAIL() << "nothing was refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::unavailable);
    EXPECT_NE(std::string(error.what()).find("MSCCL++"), std::string::npos) << error.what();
  }
}

Topology one_switch(const char* adds) {
  return generate_topology("fat_tree", {{"leaves", "1"}, {"gpus", "4"}, {"spines", "1"}, {"reduce", adds}});
}

/// Each chunk one transfer over the switch: from `givers` GPUs, the first ones, to those from `taker` on.
ProvenSchedule over_switch(const Topology& topology, const Demand& demand, int givers, int taker) {
  ProvenSchedule proven{.topology = topology, .demand = demand, .schedule = {}};
  const double us = demand.bytes(ChunkId{0}) / 25e3, latency_us = 0.5;
  for (int c = 0; c < static_cast<int>(demand.num_chunks()); ++c) {
    const auto add = [&](const Link& link, int l, bool gives) {
      const double start_us = c * us + (gives ? 0 : latency_us);
      proven.schedule.sends.push_back({.chunk = ChunkId{c},
                                       .link = LinkId{l},
                                       .start_us = start_us,
                                       .end_us = start_us + us,
                                       .arrival_us = start_us + us + link.latency_us,
                                       .op = gives && givers > 1 ? SendOp::reduce : SendOp::copy,
                                       .transfer = c});
    };
    for (int l = 0; l < static_cast<int>(topology.num_links()); ++l) {
      const Link& link = topology.link(LinkId{l});
      const GpuId src = topology.gpu_of(link.src), dst = topology.gpu_of(link.dst);
      if (src.value >= 0 && src.value < givers) add(link, l, true);
      if (dst.value >= taker) add(link, l, false);
    }
  }
  canonicalise(proven.schedule);
  const ReplayResult replayed = replay(topology, demand, proven.schedule.sends);
  EXPECT_TRUE(replayed.valid()) << *replayed.violation;
  proven.schedule.finish_us = replayed.finish_us;
  return proven;
}

/// AllReduce in `chunks` chunks, each added up by the switch and given to all GPUs.
ProvenSchedule summed_by_switch(int chunks) {
  return over_switch(one_switch("true"), make_demand(Collective::allreduce, 1e6, 4, chunks), 4, 0);
}

ProvenSchedule copied_by_switch() {
  return over_switch(one_switch("false"), make_demand(Collective::broadcast, 1e6, 4, 3), 1, 1);
}

int count(const Plan& plan, OpType type) {
  int found = 0;
  for (const Gpu& gpu : plan.gpus) {
    for (const ThreadBlock& tb : gpu.tbs)
      found += static_cast<int>(std::ranges::count(tb.ops, type, &Op::type));
  }
  return found;
}

TEST(PlanLowering, SwitchThatAddsForAllIsAGroupReduction) {
  Random random(3);
  for (const bool in_place : {false, true}) {
    for (const int instances : {1, 2}) {
      const Plan plan = planned(summed_by_switch(6), {.in_place = in_place, .instances = instances});
      // 6 chunks side by side: each of the 4 GPUs has one or two of them.
      EXPECT_EQ(count(plan, OpType::group_reduce_store), 4 * instances);
      EXPECT_EQ(count(plan, OpType::put), 0);
      EXPECT_EQ(plan.gpus[0].groups.size(), in_place ? 1U : 2U);
      EXPECT_EQ(plan.gpus[3].groups[0].ranks, (std::vector{0, 1, 2, 3}));
      const auto outputs = run_at_random(plan, random);
      ASSERT_TRUE(outputs);
      EXPECT_EQ(run_at_random(plan, random), outputs);
    }
  }
  EXPECT_EQ(count(planned(summed_by_switch(2)), OpType::group_reduce_store), 2);
}

TEST(PlanLowering, SwitchThatAddsBetweenNodesOrForOneGpuIsNamed) {
  try {
    lower_to_plan(summed_by_switch(1), {.gpus_per_node = 2});
    FAIL() << "nothing was refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::unavailable);
    EXPECT_NE(std::string(error.what()).find("one switch inside a node"), std::string::npos) << error.what();
  }
}

TEST(PlanLowering, SwitchThatCopiesIsAGroupStore) {
  const ProvenSchedule proven = copied_by_switch();
  const Plan by_switch = planned(proven), by_puts = planned(proven, {.switch_copies = false});
  EXPECT_EQ(count(by_switch, OpType::put), 0);
  EXPECT_GT(count(by_switch, OpType::group_store), 0);
  EXPECT_EQ(count(by_switch, OpType::copy), 0);  // the root's own output is written by the store
  EXPECT_EQ(count(by_puts, OpType::put), 3 * count(by_switch, OpType::group_store));
  EXPECT_EQ(count(by_puts, OpType::group_store), 0);
  Random random(4);
  EXPECT_EQ(run_at_random(by_switch, random), run_at_random(by_puts, random));
  // Between nodes there is no switch channel.
  EXPECT_EQ(count(planned(proven, {.gpus_per_node = 1}), OpType::group_store), 0);
}

/// Changes a plan somewhere; may leave it as it is.
class PlanMutator {
 public:
  PlanMutator(Plan& plan, Random& random) : plan_(plan), random_(random) {}

  void mutate() {
    Gpu& gpu = plan_.gpus[random_.below(plan_.gpus.size())];
    ThreadBlock& tb = gpu.tbs[random_.below(gpu.tbs.size())];
    if (tb.ops.empty()) return;
    const auto at = tb.ops.begin() + static_cast<std::ptrdiff_t>(random_.below(tb.ops.size()));
    switch (random_.below(13)) {
      case 0:
        return std::swap(*at, tb.ops[random_.below(tb.ops.size())]);
      case 1:
      case 2:
        tb.ops.erase(at);
        return;
      case 3:
        tb.ops.insert(at, Op(*at));
        return;
      case 4:
        return shift_operand(at->src);
      case 5:
        return shift_operand(at->dst);
      case 6:
        at->type = static_cast<OpType>(random_.below(30));
        return;
      case 7:
        if (!at->channels.empty()) at->channels[0] = pick(3);
        return;
      case 8:
        if (!at->semaphores.empty())
          at->semaphores[random_.below(at->semaphores.size())] = pick(gpu.semaphores.size() + 1);
        return;
      case 9: {
        auto& peers = gpu.peers[random_.below(2)];
        if (!peers.empty()) peers[random_.below(peers.size())] = pick(plan_.gpus.size());
        return;
      }
      case 10:
        if (!gpu.remote_buffers.empty()) {
          auto& buffer = gpu.remote_buffers[random_.below(gpu.remote_buffers.size())];
          if (random_.below(2) == 0)
            buffer.gpu = pick(plan_.gpus.size());
          else
            buffer.buffer = static_cast<mscclpp::Buffer>(random_.below(3));
        }
        return;
      case 11:
        if (!gpu.semaphores.empty()) gpu.semaphores[random_.below(gpu.semaphores.size())] += 1;
        return;
      default:
        return std::swap(tb.ops, gpu.tbs[random_.below(gpu.tbs.size())].ops);
    }
  }

 private:
  int pick(std::size_t n) { return static_cast<int>(random_.below(n)); }
  void shift_operand(std::vector<Operand>& operands) {
    if (operands.empty()) return;
    Operand& operand = operands[random_.below(operands.size())];
    switch (random_.below(4)) {
      case 0:
        operand.index += random_.below(2) == 0 ? 1 : -1;
        return;
      case 1:
        operand.size += 1;
        return;
      case 2:
        operand.buffer = static_cast<mscclpp::Buffer>(random_.below(3));
        return;
      default:
        operand.id = pick(3);
    }
  }

  Plan& plan_;
  Random& random_;
};

TEST(PlanMutations, NoneThatChangesTheResultIsAccepted) {
  constexpr int kWanted = 1000, kRuns = 10;
  const Topology ring = generate_topology("ring", {{"gpus", "4"}}),
                 full = generate_topology("full", {{"gpus", "4"}});
  const std::vector<Plan> originals = {
      planned(schedule_of(ring, Collective::allgather)),
      planned(schedule_of(ring, Collective::alltoall), {.gpus_per_node = 2}),
      planned(combined(full, Collective::allreduce, 1), {.in_place = true}),
      planned(combined(ring, Collective::allreduce, 1), {.gpus_per_node = 2}),
      planned(combined(ring, Collective::reduce_scatter, 2)),
      planned(summed_by_switch(6), {.in_place = true}),
      planned(copied_by_switch())};
  Random random(20261123);
  std::vector<PlanOutputs> right;
  const auto changes = [&](const Plan& plan, const PlanOutputs& outputs) {
    for (int k = 0; k < kRuns; ++k) {
      if (run_at_random(plan, random) != std::optional(outputs)) return true;
    }
    return false;
  };
  for (const Plan& plan : originals) {
    right.push_back(run_at_random(plan, random).value());
    ASSERT_FALSE(changes(plan, right.back()));
  }
  int changed = 0, accepted_unchanged = 0, refused_unchanged = 0;
  for (int trial = 0; changed < kWanted; ++trial) {
    ASSERT_LT(trial, 10 * kWanted);
    const std::size_t which = random.below(originals.size());
    Plan plan = originals[which];
    PlanMutator(plan, random).mutate();
    const bool accepted = mscclpp::check(plan).valid();
    if (changes(plan, right[which])) {
      ++changed;
      ASSERT_FALSE(accepted) << "trial " << trial << " of plan " << which;
    } else {
      ++(accepted ? accepted_unchanged : refused_unchanged);
    }
  }
  std::cout << changed << " that change the result, all refused; of the others " << accepted_unchanged
            << " accepted and " << refused_unchanged << " refused\n";
  EXPECT_GT(accepted_unchanged, 0);
}

}  // namespace
}  // namespace rondo::test::test_plan_lowering
