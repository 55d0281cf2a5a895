#include "command.hpp"

namespace rondo::cli {

const std::vector<Command>& commands() {
  static const std::vector<Command> all = {
      solve_command(),
      resume_command(),
      reassemble_command(),
      verify_command(),
      replay_command(),
      repair_command(),
      bound_command(),
      compare_command(),
      pareto_command(),
      import_command(),
      export_command(),
      execute_command(),
      check_xml_command(),
      check_plan_command(),
      info_command(),
      topology_list_command(),
      topology_show_command(),
      topology_check_command(),
      topology_generate_command(),
      topology_compose_command(),
      sketch_check_command(),
      profile_command(),
      catalogue_build_command(),
      catalogue_list_command(),
      catalogue_show_command(),
      catalogue_lookup_command(),
      catalogue_verify_command(),
      catalogue_check_command(),
      catalogue_refresh_command(),
      catalogue_merge_command(),
      catalogue_prune_command(),
      catalogue_tuned_command(),
      catalogue_export_command(),
      tune_command(),
  };
  return all;
}

std::function<std::string(const Settings&, const Communicator&)> on_root_alone(
    std::string (*work)(const Settings& settings)) {
  return [work](const Settings& settings, const Communicator& communicator) {
    return to_text(on_root(communicator, [&] { return to_bytes(work(settings)); }));
  };
}

}  // namespace rondo::cli
