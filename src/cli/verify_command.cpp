#include <fmt/format.h>

#include "command.hpp"
#include "figures.hpp"
#include "rondo/core/units.hpp"
#include "rondo/core/verify.hpp"
#include "rondo/io/read_as.hpp"
#include "rondo/io/schedule_files.hpp"
#include "run_folder.hpp"

namespace rondo::cli {
namespace {

std::vector<OptionGroup> verify_option_groups() {
  return {{"Input", {{"path", "PATH", "", "a schedule (FILE.h5, FILE.json) or the folder of a run"}}}};
}

ProvenSchedule checked_file(const std::filesystem::path& path) {
  ProvenSchedule proven = read_schedule(path);
  naming_file(path, [&] { rondo::verify(proven); });
  return proven;
}

std::string run_verify(const Settings& settings) {
  const std::filesystem::path path = settings.text("path");
  const ProvenSchedule proven =
      std::filesystem::is_directory(path) ? check_run(path).proven : checked_file(path);
  return fmt::format("valid: {} of {}{} on {}, {} GPUs, {} chunks, {} sends; {}\n",
                     to_string(proven.demand.collective()), format_size(proven.demand.size_bytes()),
                     describe(proven.demand.shape()), proven.topology.name(), proven.topology.num_gpus(),
                     proven.demand.num_chunks(), proven.schedule.sends.size(), describe(figures_of(proven)));
}

}  // namespace

Command verify_command() {
  return {.name = "verify",
          .arguments = "PATH",
          .summary = "replay a schedule and derive its lower bound again from its certificate",
          .positional = "path",
          .notes =
              "Of a folder, also checks that problem.json and report.json are of this schedule.\n"
              "Exit code 0 when all of it holds, 65 with the first violation named otherwise.\n\n"
              "Examples:\n"
              "  rondo verify runs/a\n"
              "  rondo verify schedule.json\n",
          .options = verify_option_groups,
          .run = on_root_alone(run_verify)};
}

}  // namespace rondo::cli
