#pragma once

#include <string>
#include <vector>

#include "rondo/io/json_files.hpp"
#include "rondo/pipeline/options.hpp"
#include "settings.hpp"

/// How to solve: the records of solve_options() as options of commands and in problem.json.
namespace rondo::cli {

/// With its default, and in its help the engines that it is for.
Option option_of(const SolveOption& option);
/// Those of a command ("solve" or "bound"), but for the seed, which stands with the fabric's options.
std::vector<OptionGroup> option_groups_of(const std::string& command);

/// What of them is given. Throws Error(usage).
SolveOptions read_solve_options(const Settings& settings, const std::string& command);
/// Throws Error(usage) for one that is given and changes nothing of this solve or bound.
void refuse_ignored(const Settings& settings, const std::string& command, const SolveOptions& options,
                    bool is_unicast);

/// As they stand in problem.json.
Json solve_options_to_json(const SolveOptions& options);
/// The way back; what an older run does not have is at its default. Throws Error(bad_data).
SolveOptions solve_options_from_json(const Json& json);

}  // namespace rondo::cli
