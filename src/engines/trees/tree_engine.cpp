#include <map>
#include <memory>

#include "rondo/core/error.hpp"
#include "rondo/engines/engine_row.hpp"
#include "rondo/engines/engines.hpp"
#include "rondo/engines/plain_allgather.hpp"
#include "tree_packing.hpp"
#include "tree_scheduler.hpp"

namespace rondo {

bool applicable_to_trees(const Instance& instance) {
  return is_plain_allgather(instance) && instance.topology->num_gpus() <= kMaxTreeGpus;
}

PreparedEngine prepare_trees(const Instance& instance, const EngineOptions&, const Toolbox&) {
  if (!is_plain_allgather(instance)) {
    throw Error(
        ExitCode::unavailable,
        "engine trees does AllGather of equal parts on fabrics without shared bandwidth; use --engine "
        "list");
  }
  // The packing depends on the number of chunks alone; seeds vary the order.
  auto packings = std::make_shared<std::map<int, TreePacking>>();
  return [topology = instance.topology, packings](const Demand& demand, const EngineOptions& options) {
    const int chunks = demand.chunks_per_contribution();
    auto known = packings->find(chunks);
    if (known == packings->end())
      known = packings->emplace(chunks, pack_trees(*topology, chunks, *demand.uniform_chunk_bytes())).first;
    EngineResult result;
    result.schedule = schedule_trees(*topology, known->second, demand, options.seed, options.concurrency);
    result.metrics["trees"] = static_cast<double>(known->second.trees.size());
    result.metrics["tree_throughput_us"] = known->second.time_us;
    return result;
  };
}

EngineInfo trees_engine() {
  return {
      .name = "trees",
      .help = "spanning trees packed at the optimal rate (Edmonds), list-scheduled; AllGather, to 64 GPUs",
      .applicable = [](const Instance& instance,
                       const EngineOptions&) { return applicable_to_trees(instance); },
      // Packing takes many maximum flows.
      .work = [](const Demand& demand, const std::string&) { return 4 * demand.num_deliveries(); },
      .traits = kContinuousTime,
      .prepare = prepare_trees};
}

}  // namespace rondo
