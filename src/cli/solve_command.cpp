#include "command.hpp"
#include "problem.hpp"
#include "run.hpp"
#include "run_folder.hpp"
#include "solve_options.hpp"

namespace rondo::cli {
namespace {

std::vector<OptionGroup> option_groups(const std::vector<std::string>&) {
  std::vector<OptionGroup> groups = problem_options();
  for (OptionGroup& group : solve_option_groups()) groups.push_back(std::move(group));
  groups.push_back(
      {"Output",
       {{"output", "DIR", "", "folder for schedule.h5, report.json and problem.json; made if need be"},
        {"force", "", "", "solve even if DIR has a result, and replace what a run left there"}}});
  return groups;
}

/// Collective. All ranks work on what the root has read: the text of problem.json.
std::string solve(const Settings& settings, const Communicator& communicator) {
  const Stopwatch clock;
  const SolveOptions options = read_solve_options(settings);
  const std::string problem = from_root(communicator, [&] {
    return file_text(problem_to_json(read_problem(settings), solve_options_to_json(options)));
  });
  return solve_run({problem, settings.text("output"), settings.has("force"), clock}, communicator);
}

}  // namespace

Command solve_command() {
  return {
      .name = "solve",
      .arguments = "--topology NAME|FILE|SPEC --collective NAME --size SIZE --output DIR [options]",
      .summary = "synthesise a schedule, prove how good it is, and write it",
      .positional = "",
      .notes =
          "The same problem and seed give the same schedule on any number of ranks, unless --time-limit ends "
          "it.\n"
          "Ctrl-C, TERM and USR1 end the search: the best schedule so far is written and report.json says\n"
          "\"interrupted\"; where there is none yet, nothing is written and the exit code is 75.\n\n"
          "Examples:\n"
          "  rondo solve --topology ndv2-2 --collective allgather --size 1GB --output runs/a\n"
          "  mpirun -n 4 rondo solve --topology torus:dims=8x8 --collective alltoall --size 64MB --gap 1% "
          "--output runs/b\n"
          "  rondo solve --config jobs/quickstart.cfg --engine list --chunks 16 --output runs/c\n",
      .options = option_groups,
      .run = solve};
}

}  // namespace rondo::cli
