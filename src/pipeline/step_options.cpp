#include "step_options.hpp"

#include <fmt/format.h>

#include <limits>

#include "option_fields.hpp"
#include "rondo/core/error.hpp"
#include "rondo/pipeline/registry.hpp"

namespace rondo {
namespace {

constexpr int kMostSteps = 1 << 10;
constexpr const char* kSteps = "Synchronous steps";

bool of_steps(const EngineInfo& engine) {
  return engine.answers;
}

}  // namespace

std::vector<SolveOption> step_options() {
  return {{"steps", "steps", kSteps, "S",
           "how many steps there are; what a step sends has arrived before the next one begins",
           whole_field(
               [](auto& o) -> auto& { return o.steps; }, 1, kMostSteps, SpecialWhole{0, {}}),
           of_steps, nullptr},
          {"rounds", "rounds", kSteps, "R",
           "rounds of all steps together, in each of which the slowest link carries one chunk; at least S",
           whole_field(
               [](auto& o) -> auto& { return o.step_rounds; }, 1, kMostSteps, SpecialWhole{0, {}}),
           of_steps, nullptr},
          {"max-conflicts", "max_conflicts", kSteps, "N",
           "conflicts of the satisfiability solver, over all its calls (default: none is too many)",
           whole_field(
               [](auto& o) -> auto& { return o.max_conflicts; }, 0, std::numeric_limits<std::int64_t>::max(),
               SpecialWhole{-1, {}}),
           of_steps, nullptr},
          {"proof", "proof", kSteps, "FILE",
           "where there is none: the proof (DRAT), with the formula that it refutes (DIMACS) in FILE.cnf",
           name_field(
               [](auto& o) -> auto& { return o.proof; },
               [](const SolveOptions&, const std::string&, const std::string&) {}),
           of_steps, nullptr}};
}

void check_steps(const Problem& problem) {
  const SolveOptions& options = problem.options;
  if (!find_engine_or_auto(options.engine).answers) return;
  const auto require = [](int given, const char* name, const char* what) {
    if (given > 0) return;
    throw Error(ExitCode::usage,
                fmt::format("engine steps answers whether there is an algorithm of so many chunks, steps and "
                            "rounds, and --{} is not given; give {}",
                            name, what));
  };
  require(options.chunks, "chunks", "the chunks of a contribution (AllToAll: of each pair's part)");
  require(options.steps, "steps", "the number of steps");
  require(options.step_rounds, "rounds", "the rounds of all steps together");
  if (options.step_rounds < options.steps) {
    throw Error(ExitCode::usage,
                fmt::format("--rounds is {} and --steps {}, but every step has one round at least; give {} "
                            "rounds or more, or fewer steps",
                            options.step_rounds, options.steps, options.steps));
  }
  if (problem.demand.kind() != DemandKind::all_reduction) return;
  if (options.steps % 2 != 0 || options.step_rounds % 2 != 0) {
    throw Error(
        ExitCode::usage,
        fmt::format("--steps is {} and --rounds {}, but engine steps does sums for several GPUs in two "
                    "halves, sums and then what spreads them, of as many steps and rounds each; give "
                    "even numbers",
                    options.steps, options.step_rounds));
  }
  const std::size_t parts = problem.demand.contributions().front().destinations.size();
  if (options.chunks % static_cast<int>(parts) == 0) return;
  throw Error(
      ExitCode::usage,
      fmt::format("--chunks is {}, but engine steps has each of the {} GPUs that want a sum add up as "
                  "many chunks of it; give a multiple of {}",
                  options.chunks, parts, parts));
}

}  // namespace rondo
