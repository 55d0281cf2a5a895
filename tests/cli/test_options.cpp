#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <stdexcept>

#include "command.hpp"
#include "rondo/core/error.hpp"
#include "rondo/pipeline/registry.hpp"
#include "solve_options.hpp"

/// All options of all commands: each counts, or is refused by name.
namespace rondo::cli::test_options {
namespace {

using Words = std::vector<std::string>;

const Command& find_command(const std::string& name) {
  for (const Command& command : commands()) {
    if (command.name == name) return command;
  }
  throw std::logic_error(name);
}

Settings parsed(const Command& command, const Words& arguments) {
  std::vector<OptionGroup> groups = command.options();
  groups.push_back(common_options());
  return parse_settings(groups, command.positional, arguments, nullptr);
}

/// What the refusal says, or nothing.
std::string refusal(const std::function<void()>& check) {
  try {
    check();
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage) << error.what();
    return error.what();
  }
}

/// A value that every range lets pass.
std::string value_of(const SolveOption& option, const std::string& engine) {
  static const std::map<std::string, std::string> words{
      {"objective", "weighted"}, {"join", "off"},   {"symmetry", "off"},
      {"lp-solver", "clp"},      {"epoch", "3"},    {"epoch-spacing", "coarse"},
      {"decompose", "pop"},      {"start", "none"}, {"lp-tolerance", "1e-4"},
      {"streams", "16"}};
  if (option.name == "engine") return engine;
  if (option.name == "policy") {
    const auto& policies = find_engine_or_auto(engine).policies;
    return policies.empty() ? "rarest" : policies.front();
  }
  const auto word = words.find(option.name);
  return word == words.end() ? "2" : word->second;
}

/// As `solve` does once it knows the demand; every option with every engine, alone and at its default.
TEST(SolveOptions, EachIsHeededOrRefusedByNameWithEveryEngine) {
  Words engines{"auto"};
  for (const EngineInfo& engine : engine_registry()) engines.push_back(engine.name);
  const Command& solve = find_command("solve");
  int refused = 0;
  for (const SolveOption& option : solve_options()) {
    for (const std::string& engine : engines) {
      const std::string default_text = option_text({}, option);
      for (const std::string& value : {value_of(option, engine), default_text}) {
        if (value.empty() || (option.name == "engine" && value != engine)) continue;
        Words arguments{"--" + option.name, value};
        if (option.name != "engine") arguments.insert(arguments.end(), {"--engine", engine});
        const Settings settings = parsed(solve, arguments);
        for (const bool is_unicast : {false, true}) {
          const SolveOptions options = read_solve_options(settings, "solve");
          const std::string said = refusal([&] { refuse_ignored(settings, "solve", options, is_unicast); });
          const bool is_heeded = why_ignored(option, options, is_unicast).empty();
          EXPECT_EQ(said.empty(), is_heeded) << engine << ": " << said;
          if (is_heeded) continue;
          ++refused;
          EXPECT_NE(said.find(fmt::format("--{} is '{}', but ", option.name, value)), std::string::npos)
              << said;
          EXPECT_NE(said.find("leave"), std::string::npos) << said;  // what would be right
        }
      }
    }
  }
  EXPECT_GT(refused, 100);
  const Settings untouched = parsed(solve, {});
  for (const bool is_unicast : {false, true})
    EXPECT_EQ(refusal([&] { refuse_ignored(untouched, "solve", {}, is_unicast); }), "");
}

TEST(SolveOptions, AreRefusedBesideOthersThatLeaveThemNothing) {
  const std::vector<std::pair<Words, std::string>> cases{
      {{"--chunks", "2", "--min-chunk-bytes", "64"}, "--min-chunk-bytes"},
      {{"--engine", "rounds", "--start", "none", "--min-chunk-bytes", "64"}, "--min-chunk-bytes"},
      {{"--engine", "rounds", "--decompose", "pop"}, "--decompose"},
      {{"--engine", "rounds", "--round-epochs", "3"}, "--round-epochs"},
      {{"--engine", "rounds", "--start", "list", "--improve-work", "5"}, "--improve-work"},
      {{"--engine", "milp", "--lp-solver", "pdhg"}, "--lp-solver"},
      {{"--lp-solver", "columns", "--lp-tolerance", "1e-4"}, "--lp-tolerance"},
      {{"--lp-solver", "columns", "--symmetry", "off"}, "--symmetry"},
      {{"--engine", "list", "--policy", "rarest-joined", "--join", "off"}, "--join"},
      {{"--engine", "lp", "--lp-solver", "columns", "--epoch-spacing", "uniform"}, "--epoch-spacing"},
      {{"--engine", "lp", "--chunks", "1", "--lp-solver", "clp", "--gap", "1%"}, "--gap"},
      {{"--engine", "flow", "--parts", "2"}, "--parts"},
      {{"--time-limit", "9", "--improve-work", "5"}, "--improve-work"}};
  for (const auto& [arguments, name] : cases) {
    const Settings settings = parsed(find_command("solve"), arguments);
    const SolveOptions options = read_solve_options(settings, "solve");
    const std::string said = refusal([&] { refuse_ignored(settings, "solve", options, true); });
    EXPECT_TRUE(said.starts_with(name + " is ")) << said;
  }
  const Settings timed = parsed(find_command("solve"), {"--time-limit", "9", "--improve-work", "5"});
  EXPECT_NE(refusal([&] { refuse_ignored(timed, "solve", read_solve_options(timed, "solve"), false); }), "");
  const Settings none = parsed(find_command("solve"), {"--time-limit", "9", "--improve-work", "0"});
  EXPECT_EQ(refusal([&] { refuse_ignored(none, "solve", read_solve_options(none, "solve"), false); }), "");
}

/// Whoever adds an option says here that it always counts, or gives it a rule and an example of its refusal.
TEST(Commands, EveryOptionAlwaysCountsOrHasARule) {
  const std::set<std::string> demand_decides{"root",
                                             "relay",
                                             "counts",
                                             "gap of bound",
                                             "ready of replay",
                                             "checkpoint-every",
                                             "type of execute",
                                             "op of execute",
                                             "demand of check-xml"};
  const std::map<std::string, std::set<std::string>> always{
      {"solve", {"topology", "degrade",      "without",       "switch-forwarding",
                 "peers",    "relay-memory", "scale-latency", "scale-bandwidth",
                 "profile",  "sketch",       "collective",    "size",
                 "tenant",   "demand",       "group",         "scenarios",
                 "output",   "resume",       "force",         "work-log",
                 "max-hours"}},
      {"resume", {"folder", "max-hours"}},
      {"reassemble", {"folder", "output"}},
      {"verify", {"path"}},
      {"replay",
       {"path", "topology", "degrade", "without", "switch-forwarding", "peers", "relay-memory",
        "scale-latency", "scale-bandwidth", "profile", "sketch", "size", "message-us", "early-epoch",
        "output"}},
      {"repair", {"path", "at", "without", "degrade", "output", "whole"}},
      {"bound",
       {"topology", "degrade", "without", "switch-forwarding", "peers", "relay-memory", "scale-latency",
        "scale-bandwidth", "profile", "sketch", "collective", "size", "tenant", "demand", "group", "json"}},
      {"compare",
       {"topology", "degrade", "without", "switch-forwarding", "peers", "relay-memory", "scale-latency",
        "scale-bandwidth", "profile", "sketch", "collective", "size", "json", "html", "svg"}},
      {"pareto",
       {"topology", "degrade", "without", "switch-forwarding", "peers", "relay-memory", "scale-latency",
        "scale-bandwidth", "profile", "sketch", "collective", "size", "tenant", "demand", "group",
        "extra-rounds", "max-steps", "max-conflicts", "output"}},
      {"export", {"path", "format", "output"}},
      {"import",
       {"path", "size", "join", "topology", "degrade", "without", "switch-forwarding", "peers",
        "relay-memory", "scale-latency", "scale-bandwidth", "profile", "sketch", "output", "force"}},
      {"sketch check",
       {"topology", "degrade", "without", "switch-forwarding", "peers", "relay-memory", "scale-latency",
        "scale-bandwidth", "profile", "sketch", "collective", "size", "tenant", "demand", "group"}},
      {"execute", {"path", "bytes", "repeat", "slots"}},
      {"check-xml", {"path", "executor", "fifo-depth", "max-findings"}},
      {"check-plan", {"path", "caps", "max-findings"}},
      {"info", {"path"}},
      {"profile", {"passes", "max-bytes", "output", "figures"}},
      {"catalogue build", {"topology",    "degrade",      "without",       "switch-forwarding",
                           "peers",       "relay-memory", "scale-latency", "scale-bandwidth",
                           "profile",     "sketch",       "collectives",   "sizes",
                           "groups",      "tolerance",    "improve-work",  "seed",
                           "concurrency", "sketches",     "output",        "force"}},
      {"catalogue list", {"path", "cells"}},
      {"catalogue show",
       {"path", "collective", "group", "topology", "degrade", "without", "switch-forwarding", "peers",
        "relay-memory", "scale-latency", "scale-bandwidth", "profile", "sketch"}},
      {"catalogue lookup",
       {"path", "collective", "group", "topology", "degrade", "without", "switch-forwarding", "peers",
        "relay-memory", "scale-latency", "scale-bandwidth", "profile", "sketch", "size", "failed", "output"}},
      {"catalogue verify", {"path", "repair", "random-sizes"}},
      {"catalogue export",
       {"path", "topology", "degrade", "without", "switch-forwarding", "peers", "relay-memory",
        "scale-latency", "scale-bandwidth", "profile", "sketch", "format", "output"}},
      {"catalogue check",
       {"path", "from-fabric", "topology", "degrade", "without", "switch-forwarding", "peers", "relay-memory",
        "scale-latency", "scale-bandwidth", "profile", "sketch", "tolerance"}},
      {"catalogue refresh",
       {"path", "from-fabric", "topology", "degrade", "without", "switch-forwarding", "peers", "relay-memory",
        "scale-latency", "scale-bandwidth", "profile", "sketch", "tolerance", "improve-work", "seed",
        "concurrency"}},
      {"catalogue tuned",
       {"path", "collective", "group", "topology", "degrade", "without", "switch-forwarding", "peers",
        "relay-memory", "scale-latency", "scale-bandwidth", "profile", "sketch", "size", "record"}},
      {"tune",
       {"path",
        "collective",
        "group",
        "topology",
        "degrade",
        "without",
        "switch-forwarding",
        "peers",
        "relay-memory",
        "scale-latency",
        "scale-bandwidth",
        "profile",
        "sketch",
        "size",
        "space",
        "measure",
        "most-runs",
        "runs",
        "sampler",
        "hyperband",
        "patience",
        "seed",
        "keep",
        "force"}},
      {"catalogue merge", {"path", "from", "same"}},
      {"catalogue prune", {"path", "keep"}},
      {"topology list", {}},
      {"topology show",
       {"topology", "degrade", "without", "switch-forwarding", "peers", "relay-memory", "scale-latency",
        "scale-bandwidth", "profile", "sketch", "svg"}},
      {"topology compose", {"node", "nodes", "network", "output"}},
      {"topology check", {"file"}},
      {"topology generate",
       {"topology", "degrade", "without", "switch-forwarding", "peers", "relay-memory", "scale-latency",
        "scale-bandwidth", "profile", "sketch", "output"}}};
  for (const Command& command : commands()) {
    ASSERT_EQ(always.count(command.name), 1U) << command.name;
    std::set<std::string> records;
    for (const SolveOption& option : solve_options()) {
      for (const std::string& name : option.commands) {
        if (name == command.name) records.insert(option.name);
      }
    }
    for (const OptionGroup& group : command.options()) {
      for (const Option& option : group.options) {
        const bool has_rule = option.why_ignored || records.count(option.name) > 0 ||
                              demand_decides.count(option.name) > 0 ||
                              demand_decides.count(option.name + " of " + command.name) > 0;
        EXPECT_EQ(has_rule ? 1U : 0U, 1U - always.at(command.name).count(option.name))
            << command.name << " --" << option.name;
        records.erase(option.name);
      }
    }
    EXPECT_TRUE(records.empty()) << command.name << " does not have --" << *records.begin();
  }
}

TEST(Commands, OptionsThatOthersLeaveNothingAreRefused) {
  const std::vector<std::pair<std::string, Words>> cases{
      {"solve", {"--degrade-seed", "1"}},
      {"solve", {"--demand", "d.json", "--pareto", "p.svg"}},
      {"bound", {"--degrade-seed", "1"}},
      {"bound", {"--seed", "1"}},
      {"topology show", {"--seed", "1"}},
      {"topology generate", {"--seed", "1", "--degrade", "0.5:0.5", "--degrade-seed", "2"}},
      {"compare", {"--force"}},
      {"tune", {"--timeout", "5"}},
      {"tune", {"--retry-failed"}},
      {"tune", {"--measure", "true", "--noise", "2%"}},
      {"tune", {"--hyperband", "off", "--eta", "2"}},
      {"tune", {"--batch", "4"}},
      {"catalogue tuned", {"--time-us", "5"}},
      {"export", {"--placement", "in-place"}},
      {"export", {"--instances", "2", "--format", "svg"}}};
  for (const auto& [name, arguments] : cases) {
    const Settings settings = parsed(find_command(name), arguments);
    EXPECT_NE(refusal([&] { settings.refuse_ignored(); }), "") << name << " " << arguments.front();
  }
  for (const Words& arguments : {Words{"--format", "msccl-xml", "--instances", "2"}, Words{}})
    EXPECT_EQ(refusal([&] { parsed(find_command("export"), arguments).refuse_ignored(); }), "");
}

}  // namespace
}  // namespace rondo::cli::test_options
