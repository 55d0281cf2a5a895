#include <iostream>

#include "random_plan_run.hpp"
#include "rondo/mscclpp/check.hpp"
#include "rondo/mscclpp/plan_files.hpp"
#include "schedules.hpp"

/// Schedules as execution plans of MSCCL++: what is made is right, and damaged it is refused.
namespace rondo::test {
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
                                         shipped("dgx1"),
                                         shipped("amd-1"),
                                         shipped("ndv2-2")};
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
  const Topology dgx1 = shipped("dgx1");
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
      planned(combined(ring, Collective::reduce_scatter, 2))};
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
}  // namespace rondo::test
