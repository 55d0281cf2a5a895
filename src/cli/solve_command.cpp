#include <fmt/format.h>
#include <fmt/ranges.h>

#include "command.hpp"
#include "pareto.hpp"
#include "problem.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/tenants.hpp"
#include "rondo/core/verify.hpp"
#include "rondo/io/files.hpp"
#include "rondo/io/read_as.hpp"
#include "rondo/io/schedule_files.hpp"
#include "rondo/io/schedule_hdf5.hpp"
#include "rondo/io/sketch_files.hpp"
#include "rondo/io/topology_files.hpp"
#include "rondo/parallel/work_log.hpp"
#include "rondo/pipeline/registry.hpp"
#include "run.hpp"
#include "run_folder.hpp"
#include "scenario_options.hpp"
#include "solve_options.hpp"

namespace rondo::cli {
namespace {

std::string why_pareto_ignored(const Settings& settings) {
  if (!settings.has("demand") && !settings.has("tenant")) return "";
  return "it varies the size, which --demand or --tenant fixes; leave it out";
}

std::string why_sketch_parts_ignored(const Settings& settings) {
  return settings.has("sketch") ? "" : "there is no sketch; give --sketch, or leave it out";
}

std::vector<OptionGroup> solve_option_groups() {
  std::vector<OptionGroup> groups = problem_options(option_of(find_solve_option("seed")));
  groups.front().options.push_back({"sketch-parts", "all|links", "all",
                                    "of a sketch: all (chunks, symmetry, senders, order, peers: engine "
                                    "route), or which links there are, which "
                                    "every engine heeds",
                                    why_sketch_parts_ignored});
  groups.front().options.push_back(scenarios_option());
  for (OptionGroup& group : option_groups_of("solve")) groups.push_back(std::move(group));
  groups.push_back(
      {"Output",
       {{"output", "DIR", "", "folder for schedule.h5, report.json and problem.json; made if need be"},
        {"resume", "", "",
         "continue an unfinished run of the same problem in DIR; begin one where there is none"},
        {"pareto", "FILE", "",
         "then print finish against chunks, and against quarters of the size, which are solved too; plots go "
         "to FILE, as SVG",
         why_pareto_ignored},
        {"work-log", "FILE", "",
         "also what this run, on one rank, would do alone or deal over ranks, and say to them: CPU seconds "
         "and "
         "bytes, for benchmarks/run.sh scaling"},
        {"force", "", "", "solve even if DIR has a result, and replace what a run left there"}}});
  groups.push_back(run_control_options());
  return groups;
}

Unfinished unfinished_of(const Settings& settings) {
  if (settings.has("force") && settings.has("resume")) {
    throw Error(ExitCode::usage,
                "--resume continues the run in DIR and --force begins again; give one of them");
  }
  if (settings.has("force")) return Unfinished::replace;
  return settings.has("resume") ? Unfinished::resume : Unfinished::refuse;
}

ProvenSchedule read_kept(const std::filesystem::path& path) {
  ProvenSchedule kept = read_schedule(path);
  naming_file(path, [&] { verify(kept); });
  return kept;
}

/// Tells one file of --from from another under the same name.
std::string digest_of_kept(const ProvenSchedule& kept) {
  return digest_of(schedule_digest(kept.demand, kept.schedule) + topology_to_json(kept.topology).dump());
}

/// Whether the sketch is to be heeded in all that it says.
bool heeds_all_of_sketch(const Settings& settings) {
  const std::string& parts = settings.text("sketch-parts");
  if (parts != "all" && parts != "links")
    throw Error(ExitCode::usage, "--sketch-parts is '" + parts + "'; it is all or links");
  return settings.has("sketch") && parts == "all";
}

/// Sets the sketch's number of chunks and keeps what it says beside links for an engine that heeds that.
/// Throws Error(unavailable), naming its fields, for one that does not.
void heed_sketch(const Settings& settings, SolveOptions& options, ProblemDocument& problem) {
  const std::string& path = settings.text("sketch");
  naming_file(path, [&] {
    const Json json = parse_json(read_text_file(path), path);
    const Sketch sketch = sketch_from_json(json, static_cast<int>(problem.topology->num_gpus()));
    const std::string chunks = "hyperparameters.input_chunkup";
    const bool is_sum = problem.demand.collective() == Collective::allreduce;
    const int asked = sketch.chunks * (is_sum ? static_cast<int>(problem.topology->num_gpus()) : 1);
    if (options.chunks != 0 && options.chunks != asked) {
      throw Error(ExitCode::usage,
                  fmt::format("--chunks is {}, but {} says {}; leave one of them out, or give "
                              "--sketch-parts links",
                              options.chunks, chunks, asked));
    }
    options.chunks = asked;
    const std::vector<std::string> fields = sketch.beyond_links();
    if (fields.empty()) return;
    if (!sketched_engine(options.engine, nullptr)) {
      throw Error(ExitCode::unavailable,
                  fmt::format("engine {} heeds which links a sketch leaves, not {}; use --engine route, or "
                              "--sketch-parts links",
                              options.engine, fmt::join(fields, ", ")));
    }
    if (problem.demand.has_several_sources() && !sketch.relays.empty()) {
      throw Error(
          ExitCode::unavailable,
          "internode_sketch.gpus_to_sender_rev_map says by whom data leave a node, which sums do not that "
          "are added up on their way; leave it out, or give --sketch-parts links");
    }
    problem.sketch = json;
  });
}

/// Collective. All ranks work on what the root has read: the text of problem.json.
std::string solve_over(const Settings& settings, const Communicator& communicator) {
  const Stopwatch clock;
  SolveOptions options = read_solve_options(settings, "solve");
  const bool heeds_all = heeds_all_of_sketch(settings);
  const RunControl control = read_run_control(settings);
  std::shared_ptr<const ProvenSchedule> start;  // on the root
  const std::string problem = from_root(communicator, [&] {
    ProblemDocument read = read_problem(settings);
    read.scenarios = read_scenarios(settings, *read.topology);
    if (heeds_all) heed_sketch(settings, options, read);
    if (tenants_of(read.demand).size() == 1 && options.objective != Objective::early)
      settings.refuse_ignored("objective", "there is one tenant; give --tenant twice, or leave it out");
    const bool is_unicast = read.demand.is_unicast();
    refuse_ignored(settings, "solve", options, is_unicast);
    settings.refuse_ignored("checkpoint-every", why_interval_ignored(control, options, is_unicast));
    Json json = problem_to_json(read, solve_options_to_json(options));
    if (!options.from.empty()) {
      start = std::make_shared<const ProvenSchedule>(read_kept(options.from));
      json["start_digest"] = digest_of_kept(*start);
    }
    return sealed_text(json);
  });
  std::string text =
      solve_run({problem, settings.text("output"), unfinished_of(settings), std::move(start), control, clock},
                communicator);
  if (!settings.has("pareto")) return text;
  const std::string report = from_root(communicator, [&] {
    return read_text_file(std::filesystem::path(settings.text("output")) / "report.json");
  });
  return pareto(parse_json(problem, "problem.json"), parse_json(report, "report.json"),
                settings.text("pareto"), communicator) +
         text;
}

Json log_to_json(const std::vector<WorkStep>& steps) {
  static constexpr const char* kTalks[] = {"none", "gather", "broadcast", "reduce"};
  Json json = Json::array();
  for (const WorkStep& step : steps) {
    Json parts = Json::array();
    for (const WorkStep::Part& part : step.parts) {
      parts.push_back({part.estimate, part.cpu_s, part.count});
      if (part.kin) parts.back().push_back(*part.kin);
    }
    json.push_back({{"own_cpu_s", step.own_cpu_s},
                    {"parts", std::move(parts)},
                    {"talk", kTalks[static_cast<std::size_t>(step.talk)]},
                    {"bytes", step.bytes}});
  }
  return {{"steps", std::move(json)}};
}

/// Collective.
std::string run_solve(const Settings& settings, const Communicator& communicator) {
  if (!settings.has("work-log")) return solve_over(settings, communicator);
  if (communicator.size() > 1) {
    throw Error(ExitCode::usage, fmt::format("--work-log is of one rank, and there are {}; leave it out",
                                             communicator.size()));
  }
  const RecordingCommunicator recorder(communicator);
  std::string text = solve_over(settings, recorder);
  write_text_file(settings.text("work-log"), log_to_json(recorder.steps()).dump() + "\n");
  return text;
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
          "TERM and USR1 stop the run within seconds with exit code 75 and all that was finished kept in "
          "DIR, as\n"
          "--max-hours does; --resume continues to the same schedule, on any number of ranks. Ctrl-C ends\n"
          "the search with the best schedule so far, and report.json says \"interrupted\". A second signal\n"
          "ends the process at once; DIR is whole then as well.\n\n"
          "Examples:\n"
          "  rondo solve --topology ndv2-2 --collective allgather --size 1GB --output runs/a\n"
          "  mpirun -n 4 rondo solve --topology torus:dims=8x8 --collective alltoall --size 64MB --gap 1% "
          "--output runs/b\n"
          "  rondo solve --from runs/a --topology ndv2-2 --degrade 0.05:0.5 --collective allgather "
          "--size 1GB --output runs/d\n"
          "  rondo solve --config jobs/quickstart.cfg --engine list --chunks 16 --output runs/c\n",
      .options = solve_option_groups,
      .run = run_solve};
}

}  // namespace rondo::cli
