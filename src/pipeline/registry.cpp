#include "rondo/pipeline/registry.hpp"

#include <utility>

#include "rondo/core/error.hpp"
#include "rondo/decomp/translations.hpp"
#include "rondo/engines/engines.hpp"
#include "rondo/formulations/formulations.hpp"
#include "rondo/solvers/pdhg.hpp"
#include "rondo/solvers/solvers.hpp"

namespace rondo {
namespace {

double deliveries(const Demand& demand, const std::string&) {
  return demand.num_deliveries();
}
/// Rotated schedules are decided for a part and copied.
double flow_work(const Demand& demand, const std::string& policy) {
  return demand.num_deliveries() * (policy.rfind("rotated", 0) == 0 ? 0.25 : 1);
}
/// List scheduling looks through the chunks for every send.
double scanning_work(const Demand& demand, const std::string&) {
  return demand.num_deliveries() * (1 + static_cast<double>(demand.num_chunks()) / 1024);
}
/// A lifted decision costs little; what remains is to write all of its translations down.
double writing_work(const Demand& demand, const std::string&) {
  return demand.num_deliveries() / 4;
}
/// Packing takes many maximum flows.
double tree_work(const Demand& demand, const std::string&) {
  return 4 * demand.num_deliveries();
}
/// Up to so many GPUs everything is tried; beyond, AllGather is left to what does not scan over all chunks,
/// and to one decision for all translations where there are any.
constexpr std::size_t kFewGpus = 64;
bool is_large_allgather(const Instance& instance) {
  return instance.topology->num_gpus() > kFewGpus && is_plain_allgather(instance);
}
bool applicable_to_lift(const Instance& instance, const EngineOptions& options) {
  return is_plain_allgather(instance) && translations_of(instance, options)->order() > 1;
}
bool applicable_to_queue(const Instance& instance, const EngineOptions& options) {
  return is_plain_allgather(instance) &&
         !(is_large_allgather(instance) && applicable_to_lift(instance, options));
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

}  // namespace

const std::vector<EngineInfo>& engine_registry() {
  static const std::vector<EngineInfo> engines{
      {"list", "event-driven list scheduling in continuous time; any demand", list_policies(),
       copies_or_small, scanning_work, true, prepare_list},
      {"queue", "list scheduling with a queue of chunks a hop, for AllGather of hundreds of GPUs",
       lift_policies(), applicable_to_queue, deliveries, true, prepare_queue},
      {"lift",
       "as queue, with one decision for all translations of a symmetric fabric; AllGather, to 4096 GPUs",
       lift_policies(), applicable_to_lift, writing_work, true, prepare_lift},
      {"trees",
       "spanning trees packed at the optimal rate (Edmonds), list-scheduled; AllGather, to 64 GPUs",
       {},
       [](const Instance& instance, const EngineOptions&) { return applicable_to_trees(instance); },
       tree_work,
       false,
       prepare_trees},
      {"flow", "steady-state flow, rounded to equal chunks and list-scheduled; AllToAll, Scatter, Gather",
       flow_policies(), unicast, flow_work, false, prepare_flow},
      {"lp",
       "time-expanded linear program of least time, rounded as flow; AllToAll, Scatter, Gather",
       {},
       never,
       deliveries,
       false,
       prepare_lp},
      {"milp",
       "multicast integer program, exact on its epoch grid; up to about 8 GPUs",
       {},
       never,
       deliveries,
       false,
       prepare_milp},
      {"rounds",
       "A* rounds: look-ahead MILPs of a few epochs after one another, over all ranks, from the list "
       "scheduler's plan",
       {},
       never,
       deliveries,
       false,
       nullptr,
       true},
  };
  return engines;
}

const std::vector<DecompositionInfo>& decompositions() {
  static const std::vector<DecompositionInfo> table{
      {"none", "every round is one problem", decompose_whole},
      {"pop", "chunks dealt at random over --parts, each with its turn on every link (PoP)", decompose_pop},
      {"ncflow", "between the chassis first, then inside each; METIS where there are no chassis (NCFlow)",
       decompose_ncflow},
  };
  return table;
}

const DecompositionInfo& find_decomposition(const std::string& name) {
  std::string known;
  for (const DecompositionInfo& decomposition : decompositions()) {
    if (decomposition.name == name) return decomposition;
    known += (known.empty() ? "" : ", ") + decomposition.name;
  }
  throw Error(ExitCode::usage, "decomposition '" + name + "' is unknown; known are: " + known);
}

const EngineInfo& find_engine(const std::string& name) {
  std::string known = "auto";
  for (const EngineInfo& engine : engine_registry()) {
    if (engine.name == name) return engine;
    known += ", " + engine.name;
  }
  throw Error(ExitCode::usage, "engine '" + name + "' is unknown; known are: " + known);
}

const std::vector<LpSolverInfo>& lp_solvers() {
  static const std::vector<LpSolverInfo> table{
      {"auto", "clp, and columns where symmetry leaves more of the steady-state flow than clp is good for"},
      {"clp", "simplex, on every rank by itself, whatever the size"},
      {"columns",
       "flows, steady or over time, by column generation over all ranks, proven to a tenth of --gap, at most "
       "0.1%"},
      {"pdhg", "first-order method (PDLP) on matrices distributed over all ranks, to --lp-tolerance"},
  };
  return table;
}

void check_lp_solver(const std::string& name) {
  std::string known;
  for (const LpSolverInfo& solver : lp_solvers()) {
    if (solver.name == name) return;
    known += (known.empty() ? "" : ", ") + solver.name;
  }
  throw Error(ExitCode::usage, "LP solver '" + name + "' is unknown; known are: " + known);
}

Toolbox make_toolbox() {
  return {all_formulations(), make_clp_solver(), make_cbc_solver(), make_clp_column_master};
}

Toolbox make_toolbox(const std::string& lp_solver, const Communicator& communicator, PdhgOptions pdhg) {
  check_lp_solver(lp_solver);
  Toolbox tools = make_toolbox();
  if (lp_solver == "clp" || lp_solver == "pdhg") tools.method = LpMethod::program;
  if (lp_solver == "columns") tools.method = LpMethod::columns;
  if (lp_solver == "pdhg") tools.lp = make_pdhg_solver(communicator, std::move(pdhg));
  return tools;
}

}  // namespace rondo
