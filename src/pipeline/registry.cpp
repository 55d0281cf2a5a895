#include "rondo/pipeline/registry.hpp"

#include "rondo/core/error.hpp"
#include "rondo/engines/engines.hpp"
#include "rondo/engines/plain_allgather.hpp"
#include "rondo/formulations/formulations.hpp"
#include "rondo/solvers/solvers.hpp"

namespace rondo {
namespace {

double deliveries(const Demand& demand, const std::string&) {
  return demand.num_deliveries();
}
/// Schedules by orbits are decided for the representatives and copied.
double flow_work(const Demand& demand, const std::string& policy) {
  return demand.num_deliveries() * (policy.starts_with("orbits") ? 0.25 : 1);
}
/// List scheduling looks through the chunks for every send.
double scanning_work(const Demand& demand, const std::string&) {
  return demand.num_deliveries() * (1 + static_cast<double>(demand.num_chunks()) / 1024);
}
/// Packing takes many maximum flows.
double tree_work(const Demand& demand, const std::string&) {
  return 4 * demand.num_deliveries();
}
/// Up to so many GPUs everything is tried; beyond, AllGather is left to what does not scan over all chunks.
constexpr std::size_t kFewGpus = 64;
bool is_large_allgather(const Instance& instance) {
  return instance.topology->num_gpus() > kFewGpus && is_plain_allgather(instance);
}
bool applicable_to_queue(const Instance& instance, const EngineOptions&) {
  return is_plain_allgather(instance);
}
/// Without copies routes are known beforehand, and `flow` finds better ones, unless the problem is small.
bool copies_or_small(const Instance& instance, const EngineOptions&) {
  if (instance.demand.is_unicast()) return instance.demand.contributions().size() <= 300;
  return !is_large_allgather(instance);
}
bool never(const Instance&, const EngineOptions&) {
  return false;
}
bool unicast(const Instance& instance, const EngineOptions&) {
  return instance.demand.is_unicast();
}

/// No epochs, no integer programs, nothing to decompose.
constexpr EngineTraits kContinuousTime{.on_epoch_grid = false,
                                       .counts_epochs = false,
                                       .flows_over_time = false,
                                       .branches = false,
                                       .relaxes_on_a_rank = false,
                                       .in_parts = false};

}  // namespace

const std::vector<EngineInfo>& engine_registry() {
  static const std::vector<EngineInfo> engines{
      {"list", "event-driven list scheduling in continuous time; any demand", list_policies(),
       copies_or_small, scanning_work, true, kContinuousTime, prepare_list},
      {"queue",
       "list scheduling with a queue of chunks a hop, one decision for all automorphisms of a symmetric "
       "fabric; AllGather, to 4096 GPUs",
       queue_policies(), applicable_to_queue, deliveries, true, kContinuousTime, prepare_queue, false,
       queue_decisions},
      {"trees",
       "spanning trees packed at the optimal rate (Edmonds), list-scheduled; AllGather, to 64 GPUs",
       {},
       [](const Instance& instance, const EngineOptions&) { return applicable_to_trees(instance); },
       tree_work,
       false,
       kContinuousTime,
       prepare_trees},
      {"flow",
       "steady-state flow, rounded to equal chunks and list-scheduled; AllToAll, Scatter, Gather",
       flow_policies(),
       unicast,
       flow_work,
       false,
       {.on_epoch_grid = false,
        .counts_epochs = false,
        .flows_over_time = false,
        .branches = false,
        .relaxes_on_a_rank = false,
        .in_parts = true},
       prepare_flow},
      {"lp",
       "time-expanded linear program of least time, rounded as flow; AllToAll, Scatter, Gather",
       {},
       never,
       deliveries,
       false,
       {.on_epoch_grid = true,
        .counts_epochs = true,
        .flows_over_time = true,
        .branches = false,
        .relaxes_on_a_rank = false,
        .in_parts = true},
       prepare_lp},
      {"milp",
       "multicast integer program, exact on its epoch grid; up to about 8 GPUs",
       {},
       never,
       deliveries,
       false,
       {.on_epoch_grid = true,
        .counts_epochs = true,
        .flows_over_time = false,
        .branches = true,
        .relaxes_on_a_rank = true,
        .in_parts = false},
       prepare_milp},
      {"rounds",
       "A* rounds: look-ahead MILPs of a few epochs after one another, over all ranks, from the list "
       "scheduler's plan",
       {},
       never,
       deliveries,
       false,
       {.on_epoch_grid = true,
        .counts_epochs = false,
        .flows_over_time = false,
        .branches = true,
        .relaxes_on_a_rank = false,
        .in_parts = true},
       nullptr,
       true},
  };
  return engines;
}

const EngineInfo& find_engine(const std::string& name) {
  std::string known = "auto";
  for (const EngineInfo& engine : engine_registry()) {
    if (engine.name == name) return engine;
    known += ", " + engine.name;
  }
  throw Error(ExitCode::usage, "engine '" + name + "' is unknown; known are: " + known);
}

const EngineInfo& find_engine_or_auto(const std::string& name) {
  static const EngineInfo portfolio{
      "auto", "a portfolio of engines over all ranks", {}, never, deliveries, true, kContinuousTime, nullptr};
  return name == portfolio.name ? portfolio : find_engine(name);
}

Toolbox make_toolbox() {
  return {all_formulations(), make_clp_solver(), make_cbc_solver(), make_clp_column_master};
}

}  // namespace rondo
