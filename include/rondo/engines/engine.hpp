#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rondo/core/collective.hpp"
#include "rondo/core/epoch_grid.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/core/topology.hpp"
#include "rondo/engines/hops.hpp"
#include "rondo/model/column_master.hpp"
#include "rondo/model/formulation.hpp"
#include "rondo/model/round_model.hpp"
#include "rondo/model/solver.hpp"

namespace rondo {

struct SteadyFlow;
struct SolvedFlow;
class Translations;

/// How an engine is to work. The same options give the same schedule.
struct EngineOptions {
  std::uint64_t seed = 0;
  std::string policy = {};       ///< "" = the engine's default; otherwise one of EngineInfo::policies
  EpochOptions epochs = {};      ///< engines on a grid
  SolveLimits limits = {};       ///< of each call of a solver
  bool policy_is_asked = false;  ///< named by the caller: no reason to leave it out
  bool symmetry = true;          ///< whether the symmetry of fabric and demand is made use of
  std::shared_ptr<const SteadyFlow> steady = nullptr;  ///< of the instance where it is known already
  /// Of the instance where they are known already.
  std::shared_ptr<const Translations> translations = nullptr;
  double bound_us = 0;    ///< a lower bound, where one is known
  double stop_at_us = 0;  ///< a schedule that ends by then is good enough (bound x (1 + gap))
};

/// How linear programs of flows are solved.
enum class LpMethod : std::uint8_t {
  by_size,  ///< `Toolbox::lp` up to a size, larger steady-state flows by columns
  program,  ///< `Toolbox::lp` whatever the size
  columns   ///< by columns
};

/// A flow as columns give it.
struct FlowByColumns {
  FlowField field;  ///< as the formulation of the same flow decodes it, of every origin
  std::map<std::string, double> figures = {};
};

/// The formulations and solvers that engines work with; the registry fills it.
struct Toolbox {
  Formulation steady_state_flow;
  Formulation time_expanded_flow;
  Formulation multicast_milp;
  RoundFormulation look_ahead_round;
  std::shared_ptr<const Solver> lp;
  std::shared_ptr<const Solver> milp;
  MakeColumnMaster column_master = nullptr;
  LpMethod method = LpMethod::by_size;
  /// Collective, where it is there: the steady-state flow by Dantzig-Wolfe columns over all ranks.
  std::function<FlowByColumns(const Instance&)> flow_by_columns = nullptr;
  /// The same for the flow over time on the instance's grid; see steady_columns.hpp for `figures`.
  std::function<FlowByColumns(const Instance&)> timed_flow_by_columns = nullptr;
  /// Collective. Where it is there, the flows that engines decide about are solved by it, in parts.
  std::function<SolvedFlow(const Instance&, const Formulation&, const SolveLimits&)> solve_in_parts = nullptr;
  bool on_all_ranks = false;  ///< engines have to be prepared by all ranks together
};

struct EngineResult {
  std::optional<Schedule> schedule = std::nullopt;  ///< absent when a limit came first
  /// What the engine found besides, for the report: numbers by name with their unit in it ("grid_finish_us").
  std::map<std::string, double> figures = {};
  std::vector<std::string> limits_hit = {};  ///< "nodes", "time", "interrupted"
  std::vector<std::string> remarks = {};  ///< sentences a user should read ("optimal on its epoch grid: ...")
};

/// What is left of an engine's work once it knows the fabric and the data: synthesise for one number of
/// chunks (that of `demand`), one policy and one seed. May be called many times.
using PreparedEngine = std::function<EngineResult(const Demand& demand, const EngineOptions& options)>;

/// Does what does not depend on the number of chunks, the policy and the seed (hop tables, flow LPs). Engines
/// make their grids themselves from `options.epochs`. Throws Error(unavailable) where the engine does not
/// support the instance, saying what would.
using Engine = std::function<PreparedEngine(const Instance& instance, const EngineOptions& options,
                                            const Toolbox& tools)>;

}  // namespace rondo
