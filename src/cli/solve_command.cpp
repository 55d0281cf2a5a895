#include <fmt/format.h>

#include <chrono>

#include "command.hpp"
#include "interrupt.hpp"
#include "problem.hpp"
#include "progress.hpp"
#include "report.hpp"
#include "rondo/core/error.hpp"
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

/// Collective: text that the root makes, on every rank.
std::string from_root(const Communicator& communicator, const std::function<std::string()>& make) {
  return to_text(on_root(communicator, [&] { return to_bytes(make()); }));
}

/// Collective. Turns an interruption that left no schedule into the exit code for it.
SynthesisResult synthesize_interruptibly(const Problem& problem, const SolveOptions& options,
                                         const Communicator& communicator) {
  const InterruptGuard guard;
  ProgressLine line;
  const Progress progress = [&](const std::string& text) { line.show(text); };
  try {
    return synthesize(problem.topology, problem.demand, options, communicator, progress, &guard.flag());
  } catch (const Error& error) {
    const bool interrupted = communicator.max(guard.flag().load() ? 1 : 0) > 0;
    if (!interrupted || error.code() != ExitCode::unavailable) throw;
    throw Error(ExitCode::stopped,
                "stopped by a signal before there was a schedule; nothing was written, run it again");
  }
}

std::string result_line(const Json& report, const std::filesystem::path& folder) {
  return fmt::format("{}; in {}: schedule.h5, report.json, problem.json\n",
                     describe(figures_of_report(report)), folder.string());
}

std::string remarks_of(const Json& report) {
  std::string text;
  for (const Json& remark : report.at("remarks")) text += remark.get<std::string>() + "\n";
  for (const Json& limit : report.at("limits_hit")) {
    text += fmt::format("ended by a limit: {}\n", limit.get<std::string>());
  }
  return text;
}

/// Collective. All ranks work on what the root has read: the text of problem.json.
std::string solve(const Settings& settings, const Communicator& communicator) {
  const auto start = std::chrono::steady_clock::now();
  const std::filesystem::path output = settings.text("output");
  const SolveOptions options = read_solve_options(settings);
  const std::string text = from_root(communicator, [&] {
    return file_text(problem_to_json(read_problem(settings), solve_options_to_json(options)));
  });
  const Json problem = parse_json(text, "problem.json");

  std::optional<RunFolder> folder;  // on the root
  const std::string found = from_root(communicator, [&] {
    folder.emplace(output);
    const std::optional<Json> report =
        settings.has("force") ? std::nullopt : folder->finished_report(problem);
    return report ? remarks_of(*report) + result_line(*report, output) : "";
  });
  if (!found.empty()) return "already solved (--force solves again)\n" + found;

  const SynthesisResult result = synthesize_interruptibly(problem_from_json(problem), options, communicator);
  const Json report = make_report(result, communicator, start);
  return from_root(communicator, [&] {
    folder->write(problem, result.proven, report);
    return remarks_of(report) + result_line(report, output);
  });
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
