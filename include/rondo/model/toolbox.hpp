#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "rondo/core/error.hpp"
#include "rondo/model/column_master.hpp"
#include "rondo/model/formulation.hpp"
#include "rondo/model/round_model.hpp"
#include "rondo/model/satisfiability.hpp"
#include "rondo/model/solver.hpp"

namespace rondo {

/// What one linear program, or those of all parts together, came to.
struct SolvedFlow {
  SolveStatus status = SolveStatus::failed;  ///< the worst of the parts
  FlowField field = {};                      ///< of all parts; finish_us is the latest
  double objective = 0;                      ///< the greatest
  double dual_bound = -kInfinity;            ///< of the whole flow; none where it was taken apart
  std::int64_t iterations = 0;               ///< the most of a model
  int columns = 0;                           ///< of the largest model
  double largest_part_s = 0;                 ///< solver's seconds of the slowest part
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
  std::map<std::string, double> metrics = {};
};

/// The formulations by name. Throws Error(internal) for a name or a kind that is not there.
class Formulations {
 public:
  using Any = std::variant<Formulation, RoundFormulation>;
  Formulations() = default;
  explicit Formulations(std::map<std::string, Any> rows) : rows_(std::move(rows)) {}

  const Formulation& operator()(const std::string& name) const { return get<Formulation>(name); }
  const RoundFormulation& round(const std::string& name) const { return get<RoundFormulation>(name); }

 private:
  template <class Kind>
  const Kind& get(const std::string& name) const {
    const auto row = rows_.find(name);
    const Kind* found = row == rows_.end() ? nullptr : std::get_if<Kind>(&row->second);
    if (found == nullptr) throw Error(ExitCode::internal, "there is no formulation '" + name + "'");
    return *found;
  }

  std::map<std::string, Any> rows_;
};

/// The formulations and solvers that engines work with; the registry fills it.
struct Toolbox {
  Formulations formulation;
  std::shared_ptr<const Solver> lp;
  std::shared_ptr<const Solver> milp;
  MakeColumnMaster column_master = nullptr;
  std::shared_ptr<const SatSolver> sat = nullptr;
  std::shared_ptr<const Solver> simplex = nullptr;  ///< for small linear programs, on this rank alone
  LpMethod method = LpMethod::by_size;
  /// Collective, where it is there: the steady-state flow by Dantzig-Wolfe columns over all ranks.
  std::function<FlowByColumns(const Instance&)> flow_by_columns = nullptr;
  /// The same for the flow over time on the instance's grid; see steady_columns.hpp for `metrics`.
  std::function<FlowByColumns(const Instance&)> timed_flow_by_columns = nullptr;
  /// Collective. Where it is there, the flows that engines decide about are solved by it, in parts.
  std::function<SolvedFlow(const Instance&, const Formulation&, const SolveLimits&)> solve_in_parts = nullptr;
  bool on_all_ranks = false;  ///< engines have to be prepared by all ranks together
};

}  // namespace rondo
