#include <fmt/format.h>

#include "command.hpp"
#include "figures.hpp"
#include "problem.hpp"
#include "rondo/bounds/bounds.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/group_limits.hpp"
#include "rondo/core/transposition.hpp"
#include "rondo/core/verify.hpp"
#include "rondo/core/version.hpp"
#include "rondo/engines/rounds.hpp"
#include "rondo/io/files.hpp"
#include "rondo/io/read_as.hpp"
#include "rondo/io/round_files.hpp"
#include "rondo/io/schedule_hdf5.hpp"
#include "rondo/pipeline/registry.hpp"
#include "run.hpp"
#include "run_folder.hpp"
#include "solve_options.hpp"

namespace rondo::cli {
namespace {

std::vector<OptionGroup> folder_option() {
  return {{"Input", {{"folder", "DIR", "", "the folder of a run"}}}};
}

std::string problem_text(const std::filesystem::path& folder) {
  return read_text_file(folder / "problem.json");
}

/// The problem of a run that this version of Rondo has begun.
std::string own_problem_text(const std::filesystem::path& folder) {
  std::string text = problem_text(folder);
  Json problem = parse_sealed_json(text, (folder / "problem.json").string());
  problem["producer"] = producer();  // the comparison with what is there names the difference
  return sealed_text(std::move(problem));
}

std::vector<OptionGroup> resume_options() {
  std::vector<OptionGroup> groups = folder_option();
  groups.push_back(run_control_options());
  return groups;
}

std::string run_resume(const Settings& settings, const Communicator& communicator) {
  const Stopwatch clock;
  const std::filesystem::path folder = settings.text("folder");
  const std::string problem = from_root(communicator, [&] { return own_problem_text(folder); });
  const RunControl control = read_run_control(settings);
  if (settings.is_given("checkpoint-every")) {
    const Json document = parse_json(problem, (folder / "problem.json").string());
    settings.refuse_ignored("checkpoint-every",
                            why_interval_ignored(control, solve_options_from_json(document.at("options")),
                                                 problem_from_json(document).demand.is_unicast()));
  }
  return solve_run({problem, folder, Unfinished::resume, nullptr, control, clock}, communicator);
}

std::vector<OptionGroup> reassemble_options() {
  std::vector<OptionGroup> groups = folder_option();
  groups.push_back({"Output", {{"output", "FILE", "", "the schedule's file (default: DIR/schedule.h5)"}}});
  return groups;
}

/// Rounds of sums for one GPU each are those of the transposed problem, which is run backwards.
Schedule assembled(const Topology& topology, const Demand& demand, const std::vector<RoundRecord>& rounds) {
  if (const auto within = within_groups(topology)) {
    Schedule schedule = assembled(*within, demand, rounds);
    set_rates(topology, *within, demand, schedule.sends);
    return schedule;
  }
  if (demand.kind() != DemandKind::reduction) return reassemble(topology, demand, rounds);
  const Topology turned = transposed(topology);
  const Demand spread = transposed(demand);
  const Schedule forwards = reassemble(turned, spread, rounds);
  return {reversed_in_time(turned, spread, forwards.sends, forwards.finish_us), forwards.finish_us};
}

std::string run_reassemble(const Settings& settings) {
  const std::filesystem::path folder = settings.text("folder");
  const std::filesystem::path output =
      settings.has("output") ? std::filesystem::path(settings.text("output")) : folder / "schedule.h5";
  const std::string text = problem_text(folder);
  const ProblemDocument problem = naming_file(
      folder / "problem.json", [&] { return problem_from_json(parse_sealed_json(text, "problem.json")); });
  const RoundPrefix prefix = read_round_files(folder, digest_of(text));
  if (!prefix.stopped_by.empty()) {
    throw Error(ExitCode::bad_data, fmt::format("only the first {} rounds of {} are whole: {}",
                                                prefix.rounds.size(), folder.string(), prefix.stopped_by));
  }
  if (prefix.rounds.empty()) {
    throw Error(ExitCode::no_input,
                fmt::format("{} has no round files; only engine rounds writes them", folder.string()));
  }
  const Demand demand = problem.demand.with_chunks(static_cast<int>(prefix.rounds.back().chunks));
  ProvenSchedule proven{*problem.topology, demand, assembled(*problem.topology, demand, prefix.rounds),
                        lower_bounds({problem.topology, problem.demand}, make_toolbox()).best(), producer()};
  verify(proven);
  write_schedule_hdf5(output, proven, digest_of(text));
  return fmt::format("{} rounds reassembled: {}; in {}\n", prefix.rounds.size(), describe(figures_of(proven)),
                     output.string());
}

}  // namespace

Command resume_command() {
  return {
      .name = "resume",
      .arguments = "DIR",
      .summary = "continue a run that was stopped or killed, from its newest whole state",
      .positional = "folder",
      .notes =
          "Any number of ranks; the schedule is the one of an undisturbed run. rondo info DIR says what is\n"
          "there and what is damaged; a damaged state is passed over for the one before it.\n\n"
          "Example:\n"
          "  mpirun -n 4 rondo resume runs/a\n",
      .options = resume_options,
      .run = run_resume};
}

Command reassemble_command() {
  return {.name = "reassemble",
          .arguments = "DIR [--output FILE]",
          .summary = "make the schedule from a run's round files, without solving",
          .positional = "folder",
          .notes =
              "Example:\n"
              "  rondo reassemble runs/a --output again.h5\n",
          .options = reassemble_options,
          .run = on_root_alone(run_reassemble)};
}

}  // namespace rondo::cli
