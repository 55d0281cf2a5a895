#include <memory>
#include <utility>

#include "orbit_images.hpp"
#include "queue_scheduler.hpp"
#include "rondo/core/error.hpp"
#include "rondo/engines/engine_row.hpp"
#include "rondo/engines/engines.hpp"
#include "rondo/engines/plain_allgather.hpp"

namespace rondo {
namespace {

/// Queue entries that a schedule of one chunk a GPU may cost: hops of all orbits, times chunks.
constexpr double kMaxEntries = 2e6;
/// With fewer automorphisms the folded schedule, which each rank has whole, would not be small.
constexpr std::size_t kLeastOrderOfFolded = 8;

FreeGroup group_of(const Instance& instance, const EngineOptions& options) {
  return options.symmetry ? find_free_group(*instance.topology, demand_pattern(instance.demand))
                          : FreeGroup::trivial(*instance.topology);
}

/// What all chunk counts, policies and seeds share.
std::shared_ptr<const OrbitFabric> prepared(const Instance& instance, const EngineOptions& options) {
  const auto with = [&](FreeGroup group) {
    const auto most = kMaxEntries / static_cast<double>(instance.topology->num_gpus());
    return std::make_shared<const OrbitFabric>(instance.topology, std::move(group),
                                               static_cast<std::size_t>(most));
  };
  auto result = with(group_of(instance, options));
  // Hops that would occupy the links of their own images are left out: the others may not be enough.
  if (result->group.order() > 1 && !result->hops.reach_all())
    result = with(FreeGroup::trivial(*instance.topology));
  return result;
}

}  // namespace

double queue_decisions(const Instance& instance, const EngineOptions& options) {
  return group_of(instance, options).order() > 1 ? 0.25 : 1;
}

PreparedEngine prepare_queue(const Instance& instance, const EngineOptions& options, const Toolbox&) {
  if (!is_plain_allgather(instance)) {
    throw Error(
        ExitCode::unavailable,
        "engine queue does AllGather of equal parts on fabrics without shared bandwidth; use --engine "
        "list");
  }
  return [shared = prepared(instance, options)](const Demand& demand, const EngineOptions& call) {
    ListRules rules = queue_rules(call.policy, call.seed);
    rules.concurrency = call.concurrency;
    EngineResult result;
    const OrbitFabric& fabric = *shared;
    const Deadline deadline(call.limits);
    const auto moves =
        representative_moves(*fabric.topology, fabric.group, fabric.hops, demand, rules, deadline);
    if (moves) {
      auto images = std::make_shared<const OrbitImages>(shared, *moves, demand);
      if (call.fold && fabric.group.order() >= kLeastOrderOfFolded) {
        result.folded = std::move(images);
      } else {
        result.schedule = Schedule{images->sends_of({0, demand.num_chunks()}), images->finish_us()};
      }
    } else {
      result.limits_hit.push_back(deadline.ended_by());
    }
    result.metrics["automorphisms"] = static_cast<double>(fabric.group.order());
    return result;
  };
}

EngineInfo queue_engine() {
  return {.name = "queue",
          .help =
              "list scheduling with a queue of chunks a hop, one decision for all automorphisms of a "
              "symmetric fabric; AllGather, to 4096 GPUs",
          .policies = queue_policies(),
          .applicable = [](const Instance& instance,
                           const EngineOptions&) { return is_plain_allgather(instance); },
          .supports_local_search = true,
          .traits = kContinuousTime,
          .prepare = prepare_queue,
          .work_share = queue_decisions};
}

}  // namespace rondo
