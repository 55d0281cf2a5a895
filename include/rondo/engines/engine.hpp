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
#include "rondo/core/folded_schedule.hpp"
#include "rondo/core/rate_account.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/core/topology.hpp"
#include "rondo/model/toolbox.hpp"

namespace rondo {

struct SteadyFlow;
struct SteinerPacking;

/// How an engine is to work. The same options give the same schedule.
struct EngineOptions {
  std::uint64_t seed = 0;
  std::string policy = {};       ///< "" = the engine's default; otherwise one of EngineInfo::policies
  EpochOptions epochs = {};      ///< engines on a grid
  SolveLimits limits = {};       ///< of each call of a solver
  bool policy_is_asked = false;  ///< named by the caller: no reason to leave it out
  /// Transfers at a time on a link of a GPU; kAnyConcurrency: no limit.
  int concurrency = kDefaultConcurrency;
  bool join = true;      ///< where messages cost, chunks may go together
  bool symmetry = true;  ///< whether the symmetry of topology and demand is made use of
  bool fold = false;     ///< an engine that can may give its schedule folded
  bool early = false;    ///< engine milp: rewards early delivery (core/early_delivery.hpp)
  std::shared_ptr<const SteadyFlow> steady = nullptr;       ///< of the instance where it is known already
  std::shared_ptr<const SteinerPacking> packing = nullptr;  ///< the same
  double bound_us = 0;                                      ///< a lower bound, where one is known
  int steps = 0;                    ///< engine steps: how many, and rounds of all together
  int rounds = 0;                   ///< at least as many as steps
  std::int64_t max_conflicts = -1;  ///< engine steps; -1 = none
  std::string proof = {};           ///< engine steps: the file for a proof that there is none; "" = none
};

struct EngineResult {
  std::optional<Schedule> schedule = std::nullopt;         ///< absent when a limit came first
  std::shared_ptr<const FoldedSchedule> folded = nullptr;  ///< instead of `schedule`
  /// What the engine found besides, for the report: numbers by name with their unit in it ("grid_finish_us").
  std::map<std::string, double> metrics = {};
  std::vector<std::string> limits_hit = {};  ///< "nodes", "time", "interrupted"
  std::vector<std::string> remarks = {};  ///< sentences a user should read ("optimal on its epoch grid: ...")
};

/// What is left of an engine's work once it knows the topology and the data: synthesise for one number of
/// chunks (that of `demand`), one policy and one seed. May be called many times.
using PreparedEngine = std::function<EngineResult(const Demand& demand, const EngineOptions& options)>;

/// Does what does not depend on the number of chunks, the policy and the seed (hop tables, flow LPs). Engines
/// make their grids themselves from `options.epochs`. Throws Error(unavailable) where the engine does not
/// support the instance, saying what would.
using Engine = std::function<PreparedEngine(const Instance& instance, const EngineOptions& options,
                                            const Toolbox& tools)>;

}  // namespace rondo
