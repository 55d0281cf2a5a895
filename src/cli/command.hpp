#pragma once

#include <functional>
#include <string>
#include <vector>

#include "rondo/parallel/communicator.hpp"
#include "settings.hpp"

/// The subcommands: one file each, all listed in commands.cpp.
namespace rondo::cli {

struct Command {
  std::string name;                       ///< one word, or two for `rondo topology ...`
  std::string arguments;                  ///< what follows the name in the usage line
  std::string summary;                    ///< one line
  std::string positional;                 ///< the option that an argument without dashes sets; empty: none
  std::string notes;                      ///< the end of --help: what is not said by the options, examples
  std::vector<OptionGroup> (*options)();  ///< without common_options()
  /// Collective. Returns what goes to standard output.
  std::function<std::string(const Settings& settings, const Communicator& communicator)> run;
};

/// For a command that needs no other rank: the root works alone, and all ranks share its outcome.
std::function<std::string(const Settings&, const Communicator&)> on_root_alone(
    std::string (*work)(const Settings& settings));

Command solve_command();
Command resume_command();
Command reassemble_command();
Command verify_command();
Command replay_command();
Command repair_command();
Command bound_command();
Command compare_command();
Command pareto_command();
Command import_command();
Command export_command();
Command execute_command();
Command check_xml_command();
Command check_plan_command();
Command info_command();
Command topology_list_command();
Command topology_show_command();
Command topology_generate_command();
Command topology_compose_command();
Command topology_check_command();
Command sketch_check_command();
Command profile_command();
Command tune_command();
Command catalogue_tuned_command();
Command catalogue_build_command();
Command catalogue_list_command();
Command catalogue_show_command();
Command catalogue_lookup_command();
Command catalogue_verify_command();
Command catalogue_check_command();
Command catalogue_refresh_command();
Command catalogue_merge_command();
Command catalogue_prune_command();
Command catalogue_export_command();

/// All commands, in the order of `rondo --help`.
const std::vector<Command>& commands();

}  // namespace rondo::cli
