#include "solve_options.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "rondo/core/error.hpp"
#include "rondo/core/nearest.hpp"
#include "rondo/decomp/decomposition.hpp"
#include "rondo/pipeline/lp_solvers.hpp"
#include "rondo/pipeline/registry.hpp"

namespace rondo::cli {
namespace {

constexpr int kMostChunks = 1 << 20;
constexpr int kMostParts = 1 << 16;
constexpr int kMostRoundEpochs = 1 << 10;
constexpr int kMostEpochs = 100'000'000;

std::string engine_help() {
  std::string help = "auto: a portfolio of engines over all ranks";
  for (const EngineInfo& engine : engine_registry())
    help += fmt::format("; {}: {}", engine.name, engine.help);
  return help;
}

std::string policy_help() {
  std::string help = "order in which an engine serves its work (default: its first; with auto: all)";
  for (const EngineInfo& engine : engine_registry()) {
    if (!engine.policies.empty()) help += fmt::format("; {}: {}", engine.name, join(engine.policies));
  }
  return help;
}

std::string decompose_help() {
  std::string help;
  for (const DecompositionInfo& d : decompositions())
    help += fmt::format("{}{}: {}", help.empty() ? "" : "; ", d.name, d.help);
  return help;
}

std::string parts_help() {
  std::vector<std::string> helps;
  for (const DecompositionInfo& d : decompositions()) {
    if (!d.parts_help.empty()) helps.push_back(d.parts_help);
  }
  return "parts " + join(helps);
}

std::string lp_solver_help() {
  std::string help = "of linear programs. ";
  for (const LpSolverInfo& solver : lp_solvers())
    help += fmt::format("{}{}: {}", help.back() == ' ' ? "" : "; ", solver.name, solver.help);
  return help;
}

void check_policy(const std::string& engine, const std::string& policy) {
  if (engine == "auto") {
    throw Error(ExitCode::usage,
                fmt::format("--policy is '{}', but auto tries all; name an --engine with it", policy));
  }
  const std::vector<std::string>& known = find_engine(engine).policies;
  if (std::find(known.begin(), known.end(), policy) != known.end()) return;
  throw Error(ExitCode::usage,
              fmt::format("--policy is '{}'; engine {} has {}{}", policy, engine,
                          known.empty() ? "none" : join(known), did_you_mean(policy, known)));
}

EpochSpacing spacing_named(const std::string& name) {
  if (name == "auto") return EpochSpacing::automatic;
  if (name == "uniform") return EpochSpacing::uniform;
  if (name == "coarse") return EpochSpacing::coarse;
  throw Error(ExitCode::usage,
              fmt::format("--epoch-spacing is '{}'; it has to be auto, uniform or coarse", name));
}

std::string name_of(EpochSpacing spacing) {
  return spacing == EpochSpacing::automatic ? "auto"
         : spacing == EpochSpacing::uniform ? "uniform"
                                            : "coarse";
}

EpochOptions read_epochs(const Settings& settings) {
  EpochOptions epochs;
  epochs.spacing = spacing_named(settings.text("epoch-spacing"));
  epochs.multiplier = settings.positive("epoch-multiplier");
  epochs.num_epochs = static_cast<int>(settings.integer("epochs", 0, kMostEpochs));
  const std::string& rule = settings.text("epoch");
  if (rule == "fastest_link") {
    epochs.rule = EpochRule::fastest_link;
  } else if (rule == "slowest_link") {
    epochs.rule = EpochRule::slowest_link;
  } else {
    epochs.rule = EpochRule::fixed;
    epochs.tau_us = parse_number(rule, "--epoch (fastest_link, slowest_link or microseconds)");
    if (epochs.tau_us <= 0) {
      throw Error(ExitCode::usage, fmt::format("--epoch is {} us; it has to be more than 0", rule));
    }
  }
  return epochs;
}

Json epoch_to_json(const EpochOptions& epochs) {
  switch (epochs.rule) {
    case EpochRule::fastest_link:
      return "fastest_link";
    case EpochRule::slowest_link:
      return "slowest_link";
    case EpochRule::fixed:
      break;
  }
  return epochs.tau_us;
}

Json or_null(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

}  // namespace

Option lp_solver_option() {
  return {"lp-solver", "NAME", "auto", lp_solver_help()};
}

std::vector<OptionGroup> solve_option_groups() {
  return {
      {"Search",
       {{"engine", "NAME", "auto", engine_help()},
        {"policy", "NAME", "", policy_help()},
        {"chunks", "N|auto", "auto",
         "equal chunks that each contribution (AllToAll: each pair's part) is split into"},
        {"min-chunk-bytes", "BYTES", "1024", "--chunks auto never splits below it"},
        lp_solver_option(),
        {"lp-tolerance", "T", "1e-6", "of pdhg: relative, of residuals and of the duality gap; 1e-9 to 0.01"},
        symmetry_option()}},
      {"When to stop (default: after a fixed amount of work)",
       {{"gap", "G", "", "finish / lower bound - 1 that is good enough: 0.01 or 1%"},
        {"time-limit", "S", "", "wall time in seconds; the schedule may then differ from run to run"},
        {"improve-work", "W", "2.5e6",
         "sends that large-neighbourhood search on the best schedule may try, 0: none; ten times as much "
         "with "
         "--gap, no limit with --time-limit"},
        {"max-nodes", "N", "",
         "branch-and-bound nodes of a call of the MILP solver (default: the engine's)"}}},
      {"Rounds (engine rounds)",
       {{"decompose", "NAME", "none",
         "how the rounds of engine rounds and the linear programs of engines lp and flow are taken apart. " +
             decompose_help()},
        {"parts", "N", "0", parts_help()},
        {"round-epochs", "K", "0", "epochs of a round; 0: twice what the longest way takes, within 4 to 16"},
        {"gamma", "G", "0.9", "worth of coming nearer to a destination, against reaching it"},
        {"start", "list|none", "list",
         "list: rounds start from the list scheduler's plan and never end later; none: the models alone"},
        {"round-columns", "N", "4000",
         "about how many binaries a part's model may have; chunks beyond are left to the plan"},
        {"round-work", "W", "4e8",
         "work of all models together, rows x (iterations + columns); 4e8 is about a minute of CPU"}}},
      {"Epochs (engines on a time grid)",
       {{"epoch", "RULE|US", "fastest_link",
         "fastest_link or slowest_link: time of a chunk on it; or microseconds"},
        {"epoch-multiplier", "X", "1", "multiplies the epoch"},
        {"epochs", "K", "0",
         "epochs in all; 0: as few as suffice (lp), as many as an incumbent takes (milp)"},
        {"epoch-spacing", "HOW", "auto",
         "engine lp: uniform, or coarse (flows are constant in longer and longer intervals away from both "
         "ends); auto: coarse where uniform is too large"}}}};
}

Option symmetry_option() {
  return {"symmetry", "auto|off", "auto",
          "auto: bounds and engines flow and lp decide what symmetry makes equal once"};
}

bool read_symmetry(const Settings& settings) {
  const std::string& symmetry = settings.text("symmetry");
  if (symmetry == "auto" || symmetry == "off") return symmetry == "auto";
  throw Error(ExitCode::usage, fmt::format("--symmetry is '{}'; it has to be auto or off", symmetry));
}

SolveOptions read_solve_options(const Settings& settings) {
  SolveOptions options;
  options.engine = settings.text("engine");
  if (options.engine != "auto") find_engine(options.engine);
  if (settings.has("policy")) {
    options.policy = settings.text("policy");
    check_policy(options.engine, options.policy);
  }
  if (settings.text("chunks") != "auto")
    options.chunks = static_cast<int>(settings.integer("chunks", 1, kMostChunks));
  options.min_chunk_bytes = settings.positive("min-chunk-bytes");
  if (settings.has("gap")) options.gap = settings.fraction("gap");
  if (settings.has("time-limit")) options.time_limit_s = settings.positive("time-limit");
  options.improve_work = settings.fraction("improve-work");
  if (settings.has("max-nodes")) options.max_nodes = settings.integer("max-nodes", 0);
  options.seed = settings.seed("seed");
  options.symmetry = read_symmetry(settings);
  options.lp_solver = settings.text("lp-solver");
  find_lp_solver(options.lp_solver);
  options.lp_tolerance = settings.positive("lp-tolerance");
  if (options.lp_tolerance < 1e-9 || options.lp_tolerance > 0.01) {
    throw Error(ExitCode::usage,
                fmt::format("--lp-tolerance is {}; it has to be within 1e-9 and 0.01", options.lp_tolerance));
  }
  options.epochs = read_epochs(settings);
  options.decompose = settings.text("decompose");
  find_decomposition(options.decompose);
  options.parts = static_cast<int>(settings.integer("parts", 0, kMostParts));
  options.rounds.epochs = static_cast<int>(settings.integer("round-epochs", 0, kMostRoundEpochs));
  options.rounds.gamma = settings.fraction("gamma");
  options.rounds.max_columns = settings.integer("round-columns", 1);
  options.rounds.model_work = settings.positive("round-work");
  const std::string& start = settings.text("start");
  if (start != "list" && start != "none") {
    throw Error(ExitCode::usage, fmt::format("--start is '{}'; it has to be list or none", start));
  }
  options.rounds.mip_start = start == "list";
  return options;
}

Json solve_options_to_json(const SolveOptions& options) {
  return {{"engine", options.engine},
          {"policy", options.policy},
          {"chunks", options.chunks == 0 ? Json("auto") : Json(options.chunks)},
          {"min_chunk_bytes", options.min_chunk_bytes},
          {"gap", or_null(options.gap)},
          {"time_limit_s", or_null(options.time_limit_s)},
          {"improve_work", options.improve_work},
          {"max_nodes", options.max_nodes < 0 ? Json(nullptr) : Json(options.max_nodes)},
          {"seed", options.seed},
          {"symmetry", options.symmetry ? "auto" : "off"},
          {"lp_solver", options.lp_solver},
          {"lp_tolerance", options.lp_tolerance},
          {"epoch", epoch_to_json(options.epochs)},
          {"epoch_multiplier", options.epochs.multiplier},
          {"epochs", options.epochs.num_epochs},
          {"epoch_spacing", name_of(options.epochs.spacing)},
          {"decompose", options.decompose},
          {"parts", options.parts},
          {"round_epochs", options.rounds.epochs},
          {"gamma", options.rounds.gamma},
          {"start", options.rounds.mip_start ? "list" : "none"},
          {"round_columns", options.rounds.max_columns},
          {"round_work", options.rounds.model_work}};
}

SolveOptions solve_options_from_json(const Json& json) {
  const auto optional = [&](const char* name) {
    return json.at(name).is_null() ? std::nullopt : std::optional<double>(json.at(name).get<double>());
  };
  try {
    SolveOptions options;
    options.engine = json.at("engine").get<std::string>();
    options.policy = json.at("policy").get<std::string>();
    options.chunks = json.at("chunks") == "auto" ? 0 : json.at("chunks").get<int>();
    options.min_chunk_bytes = json.at("min_chunk_bytes").get<double>();
    options.gap = optional("gap");
    options.time_limit_s = optional("time_limit_s");
    options.improve_work = json.at("improve_work").get<double>();
    options.max_nodes = json.at("max_nodes").is_null() ? -1 : json.at("max_nodes").get<std::int64_t>();
    options.seed = json.at("seed").get<std::uint64_t>();
    options.symmetry = json.value("symmetry", "auto") != "off";
    options.lp_solver = json.value("lp_solver", "auto");  // older runs have none
    options.lp_tolerance = json.value("lp_tolerance", 1e-6);
    options.epochs.multiplier = json.at("epoch_multiplier").get<double>();
    options.epochs.num_epochs = json.value("epochs", 0);
    options.epochs.spacing = spacing_named(json.value("epoch_spacing", "auto"));  // older runs have none
    const Json& epoch = json.at("epoch");
    options.epochs.rule = epoch == "fastest_link"   ? EpochRule::fastest_link
                          : epoch == "slowest_link" ? EpochRule::slowest_link
                                                    : EpochRule::fixed;
    if (options.epochs.rule == EpochRule::fixed) options.epochs.tau_us = epoch.get<double>();
    options.decompose = json.at("decompose").get<std::string>();
    options.parts = json.at("parts").get<int>();
    options.rounds.epochs = json.at("round_epochs").get<int>();
    options.rounds.gamma = json.at("gamma").get<double>();
    options.rounds.mip_start = json.at("start") == "list";
    options.rounds.max_columns = json.at("round_columns").get<std::int64_t>();
    options.rounds.model_work = json.at("round_work").get<double>();
    return options;
  } catch (const Json::exception& error) {
    throw Error(ExitCode::bad_data, fmt::format("options of problem.json: {}", error.what()));
  }
}

}  // namespace rondo::cli
