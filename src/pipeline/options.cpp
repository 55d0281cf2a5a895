#include "rondo/pipeline/options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "idle_options.hpp"
#include "option_fields.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/nearest.hpp"
#include "rondo/decomp/decomposition.hpp"
#include "rondo/pipeline/lp_solvers.hpp"
#include "rondo/pipeline/registry.hpp"
#include "step_options.hpp"

namespace rondo {
namespace {

constexpr int kMostChunks = 1 << 20;
constexpr int kMostParts = 1 << 16;
constexpr int kMostConcurrency = 1 << 16;
constexpr int kMostRoundEpochs = 1 << 10;
constexpr int kMostEpochs = 100'000'000;
constexpr std::int64_t kMostOfAll = std::numeric_limits<std::int64_t>::max();

constexpr const char* kSearch = "Search";
constexpr const char* kStop = "When to stop (default: after a fixed amount of work)";
constexpr const char* kEpochs = "Epochs";
constexpr const char* kParts = "Decomposition";
constexpr const char* kRounds = "Rounds";

/// "a: help of a; b: help of b".
template <class Rows>
std::string help_of(const Rows& rows) {
  std::string help;
  for (const auto& row : rows) help += fmt::format("{}{}: {}", help.empty() ? "" : "; ", row.name, row.help);
  return help;
}

std::string help_of_engines() {
  const EngineInfo& portfolio = find_engine_or_auto("auto");
  return fmt::format("{}: {}; {}", portfolio.name, portfolio.help, help_of(engine_registry()));
}

std::string help_of_policies() {
  std::string help = "order in which the engine serves its work (default: its first; auto tries all)";
  for (const EngineInfo& engine : engine_registry()) {
    if (!engine.policies.empty())
      help += fmt::format("; {}: {}", engine.name, fmt::join(engine.policies, ", "));
  }
  return help;
}

std::string help_of_parts() {
  std::vector<std::string> helps;
  for (const DecompositionInfo& decomposition : decompositions()) {
    if (!decomposition.parts_help.empty()) helps.push_back(decomposition.parts_help);
  }
  return "parts " + join(helps);
}

/// Of an engine without policies, and of auto, which tries all, the record's heeded_by says what is wrong.
void check_policy(const SolveOptions& options, const std::string& policy, const std::string& what) {
  const std::vector<std::string>& known = find_engine_or_auto(options.engine).policies;
  if (policy.empty() || known.empty() || std::ranges::find(known, policy) != known.end()) return;
  throw Error(ExitCode::usage, fmt::format("{} is '{}'; engine {} has {}{}", what, policy, options.engine,
                                           join(known), did_you_mean(policy, known)));
}

bool all_engines(const EngineInfo&) {
  return true;
}
bool on_epoch_grid(const EngineInfo& engine) {
  return engine.traits.on_epoch_grid;
}
bool in_parts(const EngineInfo& engine) {
  return engine.traits.in_parts;
}
bool in_rounds(const EngineInfo& engine) {
  return engine.works_in_rounds;
}

std::vector<SolveOption> make_options() {
  const std::vector<std::string> solve_and_bound{"solve", "bound"};
  const std::vector<std::string> solve_and_compare{"solve", "compare"};
  const std::string pdhg_range = "within 1e-9 and 0.01";
  return {
      {"engine", "engine", kSearch, "NAME", help_of_engines(),
       name_field(
           [](auto& o) -> auto& { return o.engine; },
           [](const SolveOptions&, const std::string& name, const std::string&) {
             find_engine_or_auto(name);
           }),
       all_engines, nullptr},
      {"from", "from", kSearch, "PATH",
       "begin with a schedule that was made before (FILE.h5, FILE.json, the folder of a run), for other "
       "figures, another size or without some links: it is timed anew and rerouted, and adapted with little "
       "work unless --gap or --time-limit asks for more",
       name_field(
           [](auto& o) -> auto& { return o.from; },
           [](const SolveOptions&, const std::string&, const std::string&) {}),
       [](const EngineInfo& engine) { return engine.supports_local_search || engine.combines; }, nullptr},
      {"objective", "objective", kSearch, "finish|weighted|early",
       "of several tenants: when the last of them ends, or the sum over tenants of priority x finish. early, "
       "with --engine milp: among schedules of as few epochs, or of --epochs, the greatest sum over "
       "deliveries of 1 / (k + 1) over the epochs k by whose end the data is there (TE-CCL, section 3.1)",
       choice_field(
           [](auto& o) -> auto& { return o.objective; }, {"finish", "weighted", "early"},
           std::vector{Objective::finish, Objective::weighted, Objective::early}),
       // What each engine does not heed depends on the objective: check_options() says so.
       all_engines, nullptr},
      {"policy", "policy", kSearch, "NAME", help_of_policies(),
       name_field(
           [](auto& o) -> auto& { return o.policy; }, check_policy),
       [](const EngineInfo& engine) { return !engine.policies.empty(); }, nullptr},
      {"chunks", "chunks", kSearch, "N|auto",
       "equal chunks that each contribution (AllToAll: each pair's part) is split into; with --counts one of "
       "mean size, larger ones into more",
       whole_field(
           [](auto& o) -> auto& { return o.chunks; }, 1, kMostChunks, SpecialWhole{0, "auto"}),
       all_engines, nullptr},
      {"min-chunk-bytes", "min_chunk_bytes", kSearch, "BYTES",
       "--chunks auto never splits below it (default: a 64th of a contribution, within 250 and 1024)",
       number_field(
           [](auto& o) -> auto& { return o.min_chunk_bytes; }, above_zero()),
       all_engines, why_min_chunk_bytes_idle},
      {"gap", "gap", kStop, "G", "finish / lower bound - 1 that is good enough: 0.01 or 1%",
       number_field(
           [](auto& o) -> auto& { return o.gap; }, fraction()),
       all_engines, why_gap_idle, solve_and_compare},
      {"time-limit", "time_limit_s", kStop, "S",
       "wall time in seconds; the schedule may then differ from run to run",
       number_field(
           [](auto& o) -> auto& { return o.time_limit_s; }, above_zero()),
       all_engines, nullptr},
      {"improve-work", "improve_work", kStop, "W",
       "sends that large-neighbourhood search may try, 0: none; up to 8 times as many for multicast far from "
       "the bound, 10 times with --gap, no limit with --time-limit. Joining of transfers follows it too",
       number_field(
           [](auto& o) -> auto& { return o.improve_work; }, zero_or_more()),
       [](const EngineInfo& engine) { return engine.supports_local_search || engine.works_in_rounds; },
       why_improve_work_idle},
      {"streams", "streams", kSearch, "N",
       "streams of large-neighbourhood search between two synchronisations, at most, and windows of a round; "
       "from 16 on changes of streams "
       "are merged. Several for each rank keep all ranks at work; the number of ranks changes nothing",
       whole_field(
           [](auto& o) -> auto& { return o.streams; }, kLeastStreams, kMostStreams),
       [](const EngineInfo& engine) { return engine.supports_local_search || engine.works_in_rounds; },
       why_streams_idle},
      {"max-nodes", "max_nodes", kStop, "N",
       "branch-and-bound nodes of a call of the MILP solver (default: the engine's)",
       whole_field(
           [](auto& o) -> auto& { return o.max_nodes; }, 0, kMostOfAll, SpecialWhole{-1, {}}),
       [](const EngineInfo& engine) { return engine.traits.branches; }, nullptr},
      {"seed", "seed", "", "N", "seed of all that is random",
       whole_field(
           [](auto& o) -> auto& { return o.seed; }, 0, kMostOfAll),
       all_engines, nullptr, solve_and_compare},
      {"concurrency", "concurrency", kSearch, "N",
       "transfers at a time on a link of a GPU, where links are faster than what they carry; 0: any",
       whole_field(
           [](auto& o) -> auto& { return o.concurrency; }, kAnyConcurrency, kMostConcurrency),
       [](const EngineInfo& engine) { return engine.traits.shares_links || engine.works_in_rounds; },
       why_search_idle, solve_and_compare},
      {"join", "join", kSearch, "auto|off",
       "auto: where messages cost, chunks that take the same path may go in one transfer, for one cost",
       choice_field(
           [](auto& o) -> auto& { return o.join; }, {"auto", "off"}, std::vector<char>{1, 0}),
       [](const EngineInfo& engine) { return !engine.combines; }, why_join_idle},
      {"symmetry", "symmetry", kSearch, "auto|off",
       "auto: bounds and engines decide once what symmetry makes equal; not by --lp-solver columns",
       choice_field(
           [](auto& o) -> auto& { return o.symmetry; }, {"auto", "off"}, std::vector<char>{1, 0}),
       all_engines, why_symmetry_idle, solve_and_bound},
      {"lp-solver", "lp_solver", kSearch, "NAME",
       "of flows, in bounds and engines, where a chunk has one destination. " + help_of(lp_solvers()),
       name_field(
           [](auto& o) -> auto& { return o.lp_solver; },
           [](const SolveOptions&, const std::string& name, const std::string&) { find_lp_solver(name); }),
       all_engines, why_lp_solver_idle, solve_and_bound},
      {"lp-tolerance", "lp_tolerance", kSearch, "T",
       "of pdhg: relative, of residuals and of the duality gap; 1e-9 to 0.01",
       number_field([](auto& o) -> auto& { return o.lp_tolerance; }, {1e-9, 0.01, false, pdhg_range}),
       all_engines, why_lp_tolerance_idle, solve_and_bound},
      {"epoch", "epoch", kEpochs, "RULE|US",
       "fastest_link or slowest_link: time of a chunk on it; or microseconds", epoch_field(), on_epoch_grid,
       why_round_idle},
      {"epoch-multiplier", "epoch_multiplier", kEpochs, "X", "multiplies the epoch",
       number_field(
           [](auto& o) -> auto& { return o.epochs.multiplier; }, above_zero()),
       on_epoch_grid, why_round_idle},
      {"epochs", "epochs", kEpochs, "K",
       "epochs in all; 0: as few as suffice (lp), as many as an incumbent takes (milp)",
       whole_field(
           [](auto& o) -> auto& { return o.epochs.num_epochs; }, 0, kMostEpochs),
       [](const EngineInfo& engine) { return engine.traits.counts_epochs; }, nullptr},
      {"epoch-spacing", "epoch_spacing", kEpochs, "HOW",
       "uniform, or coarse (flows are constant in longer and longer intervals away from both ends); auto: "
       "coarse where uniform is too large",
       choice_field(
           [](auto& o) -> auto& { return o.epochs.spacing; }, {"auto", "uniform", "coarse"},
           std::vector{EpochSpacing::automatic, EpochSpacing::uniform, EpochSpacing::coarse}),
       [](const EngineInfo& engine) { return engine.traits.flows_over_time; }, why_spacing_idle},
      {"decompose", "decompose", kParts, "NAME", help_of(decompositions()),
       name_field(
           [](auto& o) -> auto& { return o.decompose; },
           [](const SolveOptions&, const std::string& name, const std::string&) {
             find_decomposition(name);
           }),
       in_parts, why_decompose_idle},
      {"parts", "parts", kParts, "N", help_of_parts(),
       whole_field(
           [](auto& o) -> auto& { return o.parts; }, 0, kMostParts),
       in_parts, why_parts_idle},
      {"round-epochs", "round_epochs", kRounds, "K",
       "epochs of a round; 0: twice what the longest path takes, within 4 to 16",
       whole_field(
           [](auto& o) -> auto& { return o.rounds.epochs; }, 0, kMostRoundEpochs),
       in_rounds, why_round_idle},
      {"gamma", "gamma", kRounds, "G", "worth of coming nearer to a destination, against reaching it",
       number_field(
           [](auto& o) -> auto& { return o.rounds.gamma; }, fraction()),
       in_rounds, why_round_idle},
      {"start", "start", kRounds, "best|list|none",
       "best: rounds repair windows of the schedule that auto finds; list: A* from the list scheduler's "
       "plan, and "
       "never later; none: A* alone",
       choice_field(
           [](auto& o) -> auto& { return o.rounds.start; }, {"best", "list", "none"},
           std::vector{RoundsStart::best, RoundsStart::list, RoundsStart::none}),
       in_rounds, nullptr},
      {"round-columns", "round_columns", kRounds, "N",
       "about how many binaries a part's model may have; chunks beyond are left to the plan",
       whole_field(
           [](auto& o) -> auto& { return o.rounds.max_columns; }, 1, kMostOfAll),
       in_rounds, why_round_idle},
      {"round-work", "round_work", kRounds, "W",
       "work of all models together, rows x (iterations + columns), and of replanting; 4e8 is 10 to 60 s of "
       "CPU. No limit with --time-limit; auto has rounds only then, and 0 leaves them out",
       number_field(
           [](auto& o) -> auto& { return o.rounds.model_work; }, zero_or_more()),
       [](const EngineInfo& engine) { return engine.works_in_rounds || engine.name == "auto"; },
       why_round_work_idle},
  };
}

}  // namespace

const std::vector<SolveOption>& solve_options() {
  static const std::vector<SolveOption> table = [] {
    std::vector<SolveOption> all = make_options();
    for (SolveOption& option : step_options()) all.push_back(std::move(option));
    return all;
  }();
  return table;
}

const SolveOption& find_solve_option(const std::string& name) {
  const auto found = std::ranges::find(solve_options(), name, &SolveOption::name);
  if (found == solve_options().end()) throw Error(ExitCode::internal, "there is no option '" + name + "'");
  return *found;
}

void set_option(SolveOptions& options, const SolveOption& option, const std::string& text) {
  const std::string what = "--" + option.name;
  option.field.set(options, option.field.parse(text, what), what);
}

std::string option_text(const SolveOptions& options, const SolveOption& option) {
  struct Text {
    std::string operator()(std::monostate) const { return ""; }
    std::string operator()(std::int64_t whole) const { return std::to_string(whole); }
    std::string operator()(double number) const { return fmt::format("{}", number); }
    std::string operator()(const std::string& word) const { return word; }
  };
  return std::visit(Text{}, option.field.get(options));
}

std::vector<std::string> engines_heeding(const SolveOption& option) {
  std::vector<std::string> names;
  if (option.heeded_by(find_engine_or_auto("auto"))) names.emplace_back("auto");
  for (const EngineInfo& engine : engine_registry()) {
    if (option.heeded_by(engine)) names.push_back(engine.name);
  }
  return names;
}

std::string why_ignored(const SolveOption& option, const SolveOptions& options, bool is_unicast) {
  if (!option.heeded_by(find_engine_or_auto(options.engine))) {
    return fmt::format(
        "it changes nothing with engine {}: it is for --engine {}; choose one of these, or "
        "leave it out",
        options.engine, fmt::join(engines_heeding(option), ", "));
  }
  return option.why_idle ? option.why_idle(options, is_unicast) : "";
}

}  // namespace rondo
