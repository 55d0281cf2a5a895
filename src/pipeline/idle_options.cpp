#include "idle_options.hpp"

#include <fmt/format.h>

#include "rondo/decomp/decomposition.hpp"
#include "rondo/pipeline/lp_solvers.hpp"
#include "rondo/pipeline/registry.hpp"

namespace rondo {
namespace {

const EngineTraits& traits_of(const SolveOptions& options) {
  return find_engine_or_auto(options.engine).traits;
}
/// Rounds that the models make alone.
bool is_without_plan(const SolveOptions& options) {
  return find_engine_or_auto(options.engine).works_in_rounds && options.rounds.start == RoundsStart::none;
}

/// Rounds that repair windows of a schedule.
bool is_in_windows(const SolveOptions& options) {
  return find_engine_or_auto(options.engine).works_in_rounds && options.rounds.start == RoundsStart::best;
}

bool takes_columns_alone(const SolveOptions& options) {
  return find_lp_solver(options.lp_solver).method == LpMethod::columns;
}

}  // namespace

std::string why_round_idle(const SolveOptions& options, bool) {
  if (!is_in_windows(options)) return "";
  return "rounds that repair windows of the best schedule have no epochs and are not decomposed; give "
         "--start "
         "list or none, or leave it out";
}

std::string why_round_work_idle(const SolveOptions& options, bool) {
  if (options.engine != "auto") return "";
  if (!options.time_limit_s) return "auto repairs schedules in rounds only with --time-limit; leave it out";
  if (options.rounds.model_work > 0)
    return "with --time-limit the clock ends the rounds; give 0 for none, or leave one of them out";
  return "";
}

std::string why_min_chunk_bytes_idle(const SolveOptions& options, bool) {
  if (options.chunks > 0) return "--chunks fixes how many there are; leave one of them out";
  if (is_without_plan(options))
    return "rounds without a plan do not choose the number of chunks; give --chunks or leave it out";
  return "";
}

/// Linear programs of flows: of the bound of unicast demand, and of engines flow and lp.
std::string why_lp_solver_idle(const SolveOptions& options, bool is_unicast) {
  if (!is_unicast)
    return "there is no linear program of flows where data has several destinations; leave it out";
  const LpSolverInfo& solver = find_lp_solver(options.lp_solver);
  const bool is_of_all_ranks = solver.on_all_ranks && solver.method == LpMethod::program;
  if (is_of_all_ranks && traits_of(options).relaxes_on_a_rank) {
    return fmt::format("engine {} relaxes its integer programs on one rank, and {} works on all; give clp",
                       options.engine, solver.name);
  }
  return "";
}

std::string why_lp_tolerance_idle(const SolveOptions& options, bool) {
  if (options.lp_solver == "pdhg") return "";
  return fmt::format("--lp-solver {} solves exactly; give --lp-solver pdhg, or leave it out",
                     options.lp_solver);
}

std::string why_symmetry_idle(const SolveOptions& options, bool is_unicast) {
  if (!is_unicast || !takes_columns_alone(options)) return "";
  return "--lp-solver columns prices every origin and uses no symmetry; leave it out";
}

/// The search ends, or prefers fewer chunks, where the gap is met; rounds keep a plan that meets it.
std::string why_gap_idle(const SolveOptions& options, bool is_unicast) {
  const EngineInfo& engine = find_engine_or_auto(options.engine);
  const bool one_schedule =
      options.chunks > 0 && engine.policies.empty() && options.engine != "auto" && !engine.works_in_rounds;
  const bool of_columns = is_unicast && find_lp_solver(options.lp_solver).method != LpMethod::program;
  if (!one_schedule || of_columns) return "";
  return fmt::format(
      "engine {} makes one schedule with --chunks {}, however good it is; leave one of them out",
      options.engine, options.chunks);
}

/// Rounds of the A* technique follow a search without it.
std::string why_search_idle(const SolveOptions& options, bool) {
  if (!find_engine_or_auto(options.engine).works_in_rounds || is_in_windows(options)) return "";
  return "rounds that do not start from the best schedule do not know it; leave it out, or give --start best";
}

std::string why_improve_work_idle(const SolveOptions& options, bool is_unicast) {
  if (const std::string why = why_search_idle(options, is_unicast); !why.empty()) return why;
  if (options.time_limit_s && options.improve_work > 0)
    return "with --time-limit the clock ends the improvement; give 0 for none, or leave one of them out";
  return "";
}

std::string why_streams_idle(const SolveOptions& options, bool is_unicast) {
  if (const std::string why = why_search_idle(options, is_unicast); !why.empty()) return why;
  if (options.improve_work > 0 || options.streams == kLeastStreams) return "";
  return "--improve-work 0 leaves nothing to the streams; leave one of them out";
}

std::string why_join_idle(const SolveOptions& options, bool is_unicast) {
  if (const std::string why = why_search_idle(options, is_unicast); !why.empty()) return why;
  if (options.join || !options.policy.ends_with("-joined")) return "";
  return fmt::format("--policy {} is there to join; leave one of them out", options.policy);
}

std::string why_spacing_idle(const SolveOptions& options, bool) {
  if (!takes_columns_alone(options)) return "";
  return "--lp-solver columns takes uniform epochs; leave it out";
}

std::string why_decompose_idle(const SolveOptions& options, bool is_unicast) {
  return find_decomposition(options.decompose).is_whole ? "" : why_round_idle(options, is_unicast);
}

std::string why_parts_idle(const SolveOptions& options, bool) {
  if (!find_decomposition(options.decompose).is_whole) return "";
  return "nothing is decomposed; give --decompose pop or ncflow, or leave it out";
}

}  // namespace rondo
