#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "command.hpp"
#include "export_msccl.hpp"
#include "interrupt.hpp"
#include "problem.hpp"
#include "progress.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/units.hpp"
#include "rondo/engines/synchronous.hpp"
#include "rondo/io/files.hpp"
#include "rondo/io/run_lock.hpp"
#include "rondo/io/schedule_hdf5.hpp"
#include "rondo/msccl/executors.hpp"
#include "rondo/pipeline/frontier.hpp"
#include "run.hpp"
#include "table.hpp"

namespace rondo::cli {
namespace {

constexpr const char* kStates = "trials.json";
constexpr const char* kResult = "frontier.json";

std::vector<OptionGroup> pareto_option_groups() {
  std::vector<OptionGroup> groups = problem_options();
  groups.push_back(
      {"Frontier",
       {{"extra-rounds", "K", "4",
         "rounds are at most the steps and so many (SCCL's k); of AllReduce, which is done in two halves of "
         "equal steps and rounds, in each half"},
        {"max-steps", "S", "16", "the most steps; fewer where the bound on bandwidth is met"},
        {"max-conflicts", "N", "",
         "of the satisfiability solver, for one question; what is open then is marked (default: none is too "
         "many)"}}});
  groups.push_back(
      {"Output",
       {{"output", "DIR", "",
         "folder for frontier.json, and a schedule, a program and proofs for every point; a walk "
         "that was stopped there goes on"}}});
  return groups;
}

std::string name_of(const FrontierTrial& trial) {
  return fmt::format("{}-{}-{}", trial.chunks, trial.steps, trial.rounds);
}

const char* word_of(SatStatus status) {
  return status == SatStatus::satisfiable     ? "schedule"
         : status == SatStatus::unsatisfiable ? "refuted"
                                              : "open";
}

Json to_json(const FrontierTrial& trial) {
  return {{"chunks", trial.chunks},
          {"steps", trial.steps},
          {"rounds", trial.rounds},
          {"answer", word_of(trial.status)},
          {"conflicts", trial.conflicts}};
}

FrontierTrial trial_from_json(const Json& json) {
  FrontierTrial trial{json.at("chunks").get<int>(), json.at("steps").get<int>(),
                      json.at("rounds").get<int>()};
  const auto answer = json.at("answer").get<std::string>();
  for (const SatStatus status : {SatStatus::satisfiable, SatStatus::unsatisfiable}) {
    if (answer == word_of(status)) trial.status = status;
  }
  trial.conflicts = json.at("conflicts").get<std::int64_t>();
  return trial;
}

/// The folder of a walk, on the root: one problem, one walk at a time.
class WalkFolder {
 public:
  WalkFolder(std::filesystem::path path, Json problem)
      : path_(made(std::move(path))), problem_(std::move(problem)), lock_(path_) {
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      const std::string name = entry.path().filename();
      if (name == kStates || name == kResult || name == "lock") continue;
      if (std::filesystem::exists(path_ / kStates)) continue;
      throw Error(ExitCode::cannot_create,
                  fmt::format("{} has {}, which is of no frontier; give an empty or a new folder",
                              path_.string(), name));
    }
    remove_temporary_files(path_);
  }

  /// As text of a JSON list. Throws Error(bad_data) where the folder is of another problem.
  std::string known() const {
    const std::filesystem::path file = path_ / kStates;
    if (!std::filesystem::exists(file)) {
      keep({});
      return "[]";
    }
    const Json state = parse_sealed_json(read_text_file(file), file.string());
    for (const auto& [key, value] : problem_.items()) {
      if (state.at("problem").value(key, Json()) == value) continue;
      throw Error(
          ExitCode::bad_data,
          fmt::format("{} is of another frontier: its {} is {}, not {}; give another folder", path_.string(),
                      key, state.at("problem").value(key, Json()).dump().substr(0, 80),
                      value.dump().substr(0, 80)));
    }
    return state.at("trials").dump();
  }

  void keep(const std::vector<FrontierTrial>& trials) const {
    lock_.check();
    Json all = Json::array();
    for (const FrontierTrial& trial : trials) all.push_back(to_json(trial));
    write_text_file(path_ / kStates, sealed_text({{"problem", problem_}, {"trials", std::move(all)}}));
  }

  void write(const std::string& name, const std::string& text) const {
    lock_.check();
    write_text_file(path_ / name, text);
  }
  void write(const std::string& name, const ProvenSchedule& proven) const {
    lock_.check();
    write_schedule_hdf5(path_ / name, proven, digest_of(problem_.dump()));
  }

 private:
  static std::filesystem::path made(std::filesystem::path path) {
    make_folder(path);
    return path;
  }

  std::filesystem::path path_;
  Json problem_;
  RunLock lock_;
};

/// What a step costs at most, and a round in one chunk a contribution for each byte of the size.
struct Rates {
  double alpha_us;
  double chunk_us_per_byte;
};

Rates rates_of(const ProblemDocument& problem) {
  const Topology& topology = *problem.topology;
  return {step_cost_us(topology, problem.demand, 1, 0),
          step_cost_us(topology, problem.demand, 0, 1) / problem.demand.size_bytes()};
}

/// The program of a point for its sizes; an empty text where executors do not take it, and why.
std::string program_of(const ProvenSchedule& proven, const SizeInterval& sizes, std::string& why_none) {
  LoweringOptions options;
  options.executor = &msccl::find_executor("msccl");
  options.min_bytes = static_cast<std::int64_t>(std::ceil(sizes.from_bytes));
  if (std::isfinite(sizes.to_bytes))
    options.max_bytes = static_cast<std::int64_t>(std::ceil(sizes.to_bytes)) - 1;
  try {
    return write_msccl_xml(proven, options);
  } catch (const Error& error) {
    if (error.code() != ExitCode::unavailable) throw;
    why_none = error.what();
    return "";
  }
}

std::string size_text(double bytes) {
  return bytes == 0 ? "0" : std::isfinite(bytes) ? format_size(bytes) : "any";
}

/// Collective. Makes the schedule of a point and writes it, on the root; returns its part of frontier.json.
Json finish_point(const ProblemDocument& problem, const Frontier& frontier, std::size_t i,
                  const SizeInterval& sizes, const Rates& rates, const RunContext& context,
                  const std::optional<WalkFolder>& folder) {
  const FrontierPoint& point = frontier.points[i];
  const SynthesisResult result = [&] {
    try {
      return synthesize(problem_of({problem.topology, problem.demand}, point.trial), context);
    } catch (const Error& error) {
      if (error.code() != ExitCode::unavailable || !context.interrupted()) throw;
      throw Error(ExitCode::stopped, "stopped; the same command goes on from what is answered");
    }
  }();
  Json json = to_json(point.trial);
  json["rounds_per_chunk"] = point.trial.rounds_per_chunk();
  json["step_cost_us"] = point.trial.steps * rates.alpha_us + point.trial.rounds_per_chunk() *
                                                                  rates.chunk_us_per_byte *
                                                                  problem.demand.size_bytes();
  json["finish_us"] = result.proven.schedule.finish_us;
  json["schedule_digest"] = schedule_digest(result.proven.demand, result.proven.schedule);
  json["is_least"] = point.is_least;
  json["refuted"] = Json::array();
  for (const FrontierTrial& trial : frontier.trials) {
    const bool is_cheaper = trial.rounds_per_chunk() < point.trial.rounds_per_chunk();
    if (trial.steps == point.trial.steps && is_cheaper && trial.status == SatStatus::unsatisfiable)
      json["refuted"].push_back(name_of(trial) + ".drat");
  }
  json["from_bytes"] = sizes.is_empty() ? Json() : Json(sizes.from_bytes);
  json["to_bytes"] = sizes.is_empty() || !std::isfinite(sizes.to_bytes) ? Json() : Json(sizes.to_bytes);
  const std::string rest = from_root(context.communicator, [&] {
    const std::string name = name_of(point.trial);
    folder->write(name + ".h5", result.proven);
    Json files{{"schedule", name + ".h5"}, {"program", nullptr}};
    if (sizes.is_empty()) return files.dump();
    std::string why_none;
    const std::string program = program_of(result.proven, sizes, why_none);
    if (program.empty()) {
      files["no_program"] = why_none;
    } else {
      folder->write(name + ".xml", program);
      files["program"] = name + ".xml";
    }
    return files.dump();
  });
  json.update(parse_json(rest, "point"));
  return json;
}

std::string as_table(const Json& points) {
  std::vector<std::vector<std::string>> rows{
      {"chunks", "steps", "rounds", "rounds/chunk", "finish us", "step cost us", "refuted", "from", "below"}};
  for (const Json& point : points) {
    const bool on_envelope = !point.at("from_bytes").is_null();
    const Json& to = point.at("to_bytes");
    rows.push_back(
        {point.at("chunks").dump(), point.at("steps").dump(), point.at("rounds").dump(),
         fmt::format("{:.6g}", point.at("rounds_per_chunk").get<double>()),
         fmt::format("{:.3f}", point.at("finish_us").get<double>()),
         fmt::format("{:.3f}", point.at("step_cost_us").get<double>()),
         fmt::format("{}{}", point.at("refuted").size(), point.at("is_least").get<bool>() ? "" : " (open)"),
         on_envelope ? size_text(point.at("from_bytes").get<double>()) : "-",
         !on_envelope   ? "-"
         : to.is_null() ? "any"
                        : size_text(to.get<double>())});
  }
  return format_table(rows);
}

/// Collective. All ranks work on what the root has read.
std::string run_pareto(const Settings& settings, const Communicator& communicator) {
  const InterruptGuard guard;
  FrontierOptions options;
  options.extra_rounds = static_cast<int>(settings.integer("extra-rounds", 0, 64));
  options.most_steps = static_cast<int>(settings.integer("max-steps", 1, 1024));
  if (settings.has("max-conflicts")) options.max_conflicts = settings.integer("max-conflicts", 1);
  const std::filesystem::path path = settings.text("output");
  const Json limits = {{"extra_rounds", options.extra_rounds},
                       {"max_steps", options.most_steps},
                       {"max_conflicts", options.max_conflicts}};
  const std::string text =
      from_root(communicator, [&] { return sealed_text(problem_to_json(read_problem(settings), limits)); });
  const Json document = parse_sealed_json(text, "problem");
  const ProblemDocument problem = problem_from_json(document);
  if (!problem.tenants.empty())
    throw Error(ExitCode::unavailable, "a frontier is of one collective; give one --tenant, or --collective");

  std::optional<WalkFolder> folder;  // on the root
  const std::string known = from_root(communicator, [&] {
    folder.emplace(path, document);
    return folder->known();
  });
  for (const Json& trial : parse_json(known, kStates)) options.known.push_back(trial_from_json(trial));
  options.proof = [&](const FrontierTrial& trial) { return path / (name_of(trial) + ".drat"); };
  options.keep = [&](const std::vector<FrontierTrial>& trials) {
    from_root(communicator, [&] {
      folder->keep(trials);
      return std::string();
    });
  };
  ProgressLine line;
  const RunContext context{communicator, [&](const std::string& progress) { line.show(progress); },
                           &guard.flag()};
  const Frontier frontier = walk_frontier({problem.topology, problem.demand}, options, context);
  if (frontier.points.empty()) {
    throw Error(
        ExitCode::unavailable,
        fmt::format("no synchronous algorithm has up to {} steps and {} rounds more; raise --max-steps "
                    "or --extra-rounds",
                    options.most_steps, options.extra_rounds));
  }
  const Rates rates = rates_of(problem);
  const auto sizes = size_intervals(frontier.points, rates.alpha_us, rates.chunk_us_per_byte);
  Json points = Json::array();
  for (std::size_t i = 0; i < frontier.points.size(); ++i)
    points.push_back(finish_point(problem, frontier, i, sizes[i], rates, context, folder));

  ProvenSchedule bounded{.topology = *problem.topology, .demand = problem.demand, .schedule = {}};
  bounded.lower_bound = frontier.bound;
  Json trials = Json::array();
  for (const FrontierTrial& trial : frontier.trials) trials.push_back(to_json(trial));
  const Json json = {{"topology", problem.topology->name()},
                     {"collective", to_string(problem.demand.collective())},
                     {"size_bytes", problem.demand.size_bytes()},
                     {"limits", limits},
                     {"alpha_us", rates.alpha_us},
                     {"least_rounds_per_chunk", frontier.least_rounds_per_chunk},
                     {"bound_without_latency", schedule_to_json(bounded).at("lower_bound")},
                     {"meets_bound", frontier.meets_bound},
                     {"points", points},
                     {"trials", std::move(trials)}};
  return from_root(communicator, [&] {
    folder->write(kResult, format_json(json));
    return as_table(points) +
           (frontier.meets_bound
                ? "the last point meets the bound on bandwidth: no further steps gain anything\n"
                : fmt::format("the bound on bandwidth, {:.6g} rounds a chunk, is not met in {} steps\n",
                              frontier.least_rounds_per_chunk, options.most_steps)) +
           fmt::format("in {}: {}\n", path.string(), kResult);
  });
}

}  // namespace

Command pareto_command() {
  return {.name = "pareto",
          .arguments = "--topology NAME|FILE|SPEC --collective NAME --size SIZE --output DIR [options]",
          .summary = "synchronous algorithms that trade steps for rounds, each proven to be the cheapest",
          .positional = "",
          .notes =
              "For every number of steps the fewest rounds a chunk (SCCL's algorithm 1), until the bound on "
              "bandwidth\n"
              "is met. A point has a schedule (C-S-R.h5), the sizes for which it costs least and a program "
              "for them\n"
              "(C-S-R.xml); what would be cheaper has a refutation (C-S-R.drat in DRAT, its formula beside "
              "it) or is\n"
              "below the bound, whose certificate is in frontier.json.\n\n"
              "Example:\n"
              "  mpirun -n 2 rondo pareto --topology dgx1 --collective allgather --size 1MB --output "
              "frontier\n",
          .options = pareto_option_groups,
          .run = run_pareto};
}

}  // namespace rondo::cli
