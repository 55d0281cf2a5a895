#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "rondo/core/epoch_grid.hpp"
#include "rondo/core/rate_account.hpp"
#include "rondo/engines/rounds.hpp"

namespace rondo {

inline constexpr std::int64_t kLeastStreams = 8;
inline constexpr std::int64_t kMostStreams = 4096;

struct EngineInfo;  // rondo/pipeline/registry.hpp

/// What makes a schedule good.
enum class Objective {
  finish,    ///< when the last delivery ends
  weighted,  ///< of several tenants: the sum of priority x the time at which the tenant ends
  early,     ///< the reward of early delivery (core/early_delivery.hpp), of an engine on an epoch grid
};

/// How to solve a problem. What each one means, which values it takes and which engines heed it: its record
/// in solve_options().
struct SolveOptions {
  std::string engine = "auto";
  std::string from = {};  ///< file or run of the schedule to begin with; "" = none
  Objective objective = Objective::finish;
  std::string policy = {};                     ///< "" = the engine's default (auto: all)
  int chunks = 0;                              ///< chunks a contribution; 0 = auto
  std::optional<double> min_chunk_bytes = {};  ///< auto never splits below it; absent: as the size asks
  std::optional<double> gap = {};              ///< stop once finish / bound - 1 <= gap
  /// The same, but no more work is done for it than without; no option of the command line.
  std::optional<double> enough_gap = {};
  /// Of chunks, to meet the number that another part has; no option of the command line.
  bool only_powers_of_two = false;
  std::optional<double> time_limit_s = {};
  /// Work of large-neighbourhood search on the best schedule, in sends; 0: none. With `gap` ten times as
  /// much.
  double improve_work = 2.5e6;
  std::int64_t streams = kLeastStreams;  ///< of local search between two synchronisations, at most
  std::uint64_t seed = 0;
  int concurrency = kDefaultConcurrency;  ///< transfers at a time on a link of a GPU; kAnyConcurrency: any
  bool join = true;                       ///< where messages cost, chunks may go together
  bool symmetry = true;                   ///< whether the symmetry of topology and demand is made use of
  EpochOptions epochs = {};               ///< engines on an epoch grid
  std::string lp_solver = "auto";         ///< one of lp_solvers()
  std::optional<double> flow_gap = {};    ///< that columns are proven to; absent: see prepare_toolbox.cpp
  double lp_tolerance = 1e-6;             ///< of pdhg: relative, of both residuals and of the duality gap
  std::int64_t max_nodes = -1;            ///< of a call of the MILP solver; -1 = the engine's default
  std::string decompose = "none";         ///< one of decompositions()
  int parts = 0;                          ///< 0 = the decomposition's own choice
  RoundOptions rounds = {};
  int steps = 0;                    ///< of engine steps; 0 = not given
  int step_rounds = 0;              ///< of all steps together; 0 = not given
  std::int64_t max_conflicts = -1;  ///< of the satisfiability solver; -1 = none
  std::string proof = {};           ///< file for the proof that there is no algorithm; "" = none

  /// The gap that ends a search. Without --gap a finish time this near to the bound counts as optimal.
  double gap_to_meet() const { return gap.value_or(enough_gap.value_or(1e-6)); }
  bool has_gap_to_meet() const { return gap || enough_gap; }
};

/// What an option is set to, as problem.json has it: null, a number or a word.
using OptionValue = std::variant<std::monostate, std::int64_t, double, std::string>;

/// Reads and writes one member of SolveOptions. `what` ("--gap") names it in messages.
struct OptionField {
  std::function<OptionValue(const SolveOptions& options)> get;
  /// Throws Error(usage) where no value is written like that.
  std::function<OptionValue(const std::string& text, const std::string& what)> parse;
  /// Throws Error(usage) for values out of range.
  std::function<void(SolveOptions& options, const OptionValue& value, const std::string& what)> set;
};

/// All that there is to know about one option: command line, --help, --config, --print-config, problem.json,
/// its range and the refusal where it would be ignored come from this record.
struct SolveOption {
  std::string name;     ///< on the command line, without dashes
  std::string key;      ///< in problem.json
  std::string group;    ///< what it stands under in --help
  std::string metavar;  ///< what stands for its value in --help
  std::string meaning;  ///< with the unit; without the engines
  OptionField field;
  /// Whether an engine ("auto" included) heeds it at all.
  std::function<bool(const EngineInfo& engine)> heeded_by;
  /// With an engine that does: why these options, or demand of this kind, leave it nothing to change, and
  /// what to do about it. Empty where it counts.
  std::function<std::string(const SolveOptions& options, bool is_unicast)> why_idle;
  std::vector<std::string> commands = {"solve"};  ///< that have it; in `bound` it counts as with engine auto
};

/// In the order in which they are set: the engine comes first.
const std::vector<SolveOption>& solve_options();
/// Throws Error(internal) for names that are not in the table.
const SolveOption& find_solve_option(const std::string& name);

/// Sets an option from its text. Throws Error(usage) saying what it has to be.
void set_option(SolveOptions& options, const SolveOption& option, const std::string& text);
/// As a user would write it; empty for none.
std::string option_text(const SolveOptions& options, const SolveOption& option);

/// Why the option changes nothing, with what would be right; empty where it is heeded.
std::string why_ignored(const SolveOption& option, const SolveOptions& options, bool is_unicast);
/// The names of the engines that heed it, "auto" among them.
std::vector<std::string> engines_heeding(const SolveOption& option);

}  // namespace rondo
