#pragma once

#include "rondo/io/json_files.hpp"
#include "rondo/pipeline/synthesize.hpp"
#include "settings.hpp"

/// How to solve: the options of `rondo solve` beyond the problem.
namespace rondo::cli {

/// Shared by `solve` and `bound`.
Option lp_solver_option();
std::vector<OptionGroup> solve_option_groups();
/// Throws Error(usage).
SolveOptions read_solve_options(const Settings& settings);
/// --symmetry, of `solve` and `bound`.
Option symmetry_option();
bool read_symmetry(const Settings& settings);
/// As they stand in problem.json.
Json solve_options_to_json(const SolveOptions& options);
/// The way back. Throws Error(bad_data).
SolveOptions solve_options_from_json(const Json& json);

}  // namespace rondo::cli
