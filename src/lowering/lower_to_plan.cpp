#include <algorithm>

#include "plan_maker.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/index.hpp"
#include "rondo/lowering/lowering.hpp"
#include "rondo/mscclpp/check.hpp"
#include "switch_use.hpp"

namespace rondo {
namespace {
constexpr int kMostAttempts = 16;
/// Threadblocks that run at the same time: one a streaming multiprocessor, of which A100 has 108, the fewest
/// of the GPUs that MSCCL++ runs on.
constexpr int kMostTbs = 108;

/// Caps that lower() has to keep so that a plan fits. Steps: what most of a threadblock's can become.
msccl::Executor plan_executor(int steps) {
  return {.name = "MSCCL++",
          .description = "",
          .steps = steps,
          .tbs = kMostTbs,
          .dependency_tb = kMostTbs,
          .channels = 1 << 20,
          .connections = 1 << 20,
          .count = 1 << 20,
          .offset = 1 << 30,
          .xml_nodes = 1 << 30,
          .gpus = 1 << 20,
          .name_length = 255,
          .colls = {"allgather", "alltoall", "allreduce", "reducescatter", "broadcast", "reduce", "gather",
                    "scatter", "custom"}};
}

std::vector<int> nodes_of(const Topology& topology, int gpus_per_node) {
  std::vector<int> nodes;
  for (std::size_t g = 0; g < topology.num_gpus(); ++g) {
    const std::optional<int> chassis = topology.node(topology.node_of(GpuId{g})).chassis;
    nodes.push_back(gpus_per_node > 0 ? static_cast<int>(g) / gpus_per_node : chassis.value_or(-1));
  }
  return nodes;
}

int most_ops(const mscclpp::Plan& plan) {
  std::size_t most = 0;
  for (const mscclpp::Gpu& gpu : plan.gpus) {
    for (const mscclpp::ThreadBlock& tb : gpu.tbs) most = std::max(most, tb.ops.size());
  }
  return static_cast<int>(most);
}

void refuse_beyond_caps(const mscclpp::Plan& plan) {
  const auto excess = mscclpp::beyond_caps(plan);
  if (!excess) return;
  throw Error(ExitCode::unavailable,
              *excess + "; use fewer chunks (--chunks of rondo solve), fewer --instances or another engine");
}

}  // namespace

mscclpp::Plan lower_to_plan(const ProvenSchedule& proven, const PlanOptions& options) {
  const std::vector<int> nodes = nodes_of(proven.topology, options.gpus_per_node);
  // A threadblock may have more steps than the least that 64 operations are enough for.
  int steps = mscclpp::kCaps.ops;
  for (int attempt = 1;; ++attempt) {
    const msccl::Executor executor = plan_executor(steps);
    const lowering::Lowered lowered = lowering::lower_with_switches(proven,
                                                                    {.executor = &executor,
                                                                     .in_place = options.in_place,
                                                                     .instances = options.instances,
                                                                     .max_peers = options.max_peers,
                                                                     .name = options.name,
                                                                     .reuse_scratch = false},
                                                                    nodes);
    if (options.switch_copies && !lowered.multicasts.empty()) {
      mscclpp::Plan plan = make_plan(lowered, nodes, lowered.multicasts, options);
      // A store that the sender's own reads cannot be ordered with, or one channel too many: then by puts.
      if (!mscclpp::beyond_caps(plan) && mscclpp::check(plan).valid()) return plan;
    }
    mscclpp::Plan plan = make_plan(lowered, nodes, {}, options);
    const int ops = most_ops(plan);
    if (ops > mscclpp::kCaps.ops && attempt < kMostAttempts && steps > 1) {
      // Fewer steps have more waits among them.
      steps = std::max(1, std::min(steps - 1, steps * (mscclpp::kCaps.ops - 8) / ops));
      continue;
    }
    refuse_beyond_caps(plan);
    mscclpp::CheckResult result = mscclpp::check(plan);
    if (!result.valid()) {
      // A sender may not hear when the place of what it sends has been read for the last time.
      plan = make_plan(lowered, nodes, {}, options, Landing::apart);
      refuse_beyond_caps(plan);
      result = mscclpp::check(plan);
    }
    if (!result.valid()) {
      throw Error(ExitCode::internal,
                  "the plan made from the schedule is wrong: " + result.findings.front().where + ": " +
                      result.findings.front().what);
    }
    return plan;
  }
}

}  // namespace rondo
