#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "rondo/core/error.hpp"
#include "rondo/core/generators.hpp"
#include "rondo/pipeline/registry.hpp"
#include "rondo/pipeline/synthesize.hpp"

namespace rondo::test_options {
namespace {

using Texts = std::map<std::string, std::string>;

/// Of every option a value that is not its default.
const Texts& other_values() {
  static const Texts all{{"engine", "list"},
                         {"from", "runs/kept"},
                         {"objective", "weighted"},
                         {"policy", "furthest"},
                         {"chunks", "3"},
                         {"min-chunk-bytes", "2048"},
                         {"gap", "300%"},
                         {"time-limit", "0.5"},
                         {"improve-work", "0"},
                         {"streams", "64"},
                         {"max-nodes", "0"},
                         {"seed", "7"},
                         {"concurrency", "3"},
                         {"join", "off"},
                         {"symmetry", "off"},
                         {"lp-solver", "columns"},
                         {"lp-tolerance", "0.01"},
                         {"epoch", "slowest_link"},
                         {"epoch-multiplier", "2"},
                         {"epochs", "40"},
                         {"epoch-spacing", "coarse"},
                         {"decompose", "pop"},
                         {"parts", "2"},
                         {"round-epochs", "2"},
                         {"gamma", "0"},
                         {"start", "none"},
                         {"round-columns", "10"},
                         {"round-work", "1"},
                         {"steps", "3"},
                         {"rounds", "4"},
                         {"max-conflicts", "9"},
                         {"proof", "none.drat"}};
  return all;
}

/// Options whose effect shows within moments on a small fabric, with what has to be set beside them.
const std::map<std::string, Texts>& observed() {
  static const std::map<std::string, Texts> all{{"policy", {}},
                                                {"chunks", {}},
                                                {"seed", {}},
                                                {"symmetry", {}},
                                                {"lp-solver", {}},
                                                {"epochs", {}},
                                                {"epoch-spacing", {{"epochs", "200"}}}};
  return all;
}

std::vector<std::string> engine_names() {
  std::vector<std::string> names{"auto"};
  for (const EngineInfo& engine : engine_registry()) names.push_back(engine.name);
  return names;
}

/// Links of different speed, so that there are choices; small, so that all is over at once.
std::shared_ptr<const Topology> fabric() {
  static const auto topology =
      std::make_shared<const Topology>(generate_topology("star", {{"chassis", "2"}, {"gpus", "2"}}));
  return topology;
}

constexpr double kBytesOfPart = 8192;

SolveOptions options_of(const std::string& engine, const Texts& texts) {
  SolveOptions options;
  options.engine = engine;
  options.gap = 0.5;
  options.improve_work = 2e3;
  for (const auto& [name, text] : texts) {
    set_option(options, find_solve_option(name), text);
  }
  return options;
}

/// All that a run comes to, but for times; nothing where the engine does not support the demand.
std::optional<std::string> outcome(const Demand& demand, const SolveOptions& options) {
  try {
    const SynthesisResult result = synthesize({fabric(), demand, options}, {*make_local_communicator()});
    std::string text = fmt::format("{} {} {}", result.engine, result.seed, result.proven.lower_bound->us);
    for (const Send& send : result.proven.schedule.sends)
      text += fmt::format(" {}:{}@{}", send.chunk.value, send.link.value, send.start_us);
    for (const auto& [name, value] : result.metrics) {
      if (!name.ends_with("_s")) text += fmt::format(" {}={}", name, value);
    }
    for (const std::string& limit : result.limits_hit) text += " " + limit;
    for (const std::string& remark : result.remarks) text += " " + remark;
    for (const auto& candidate : result.candidates)
      text += fmt::format(" {}/{}", candidate.engine, candidate.chunks);
    for (const RoundRecord& round : result.rounds) {
      for (const RoundPart& part : round.parts)
        text += fmt::format(" {} {} {} {}", part.name, part.outcome, part.columns, part.nodes);
    }
    return text;
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// The outcome that each option's is compared with: found once for all of them.
const std::optional<std::string>& outcome_before(const Demand& demand, const std::string& engine,
                                                 const Texts& beside) {
  static std::map<std::tuple<bool, std::string, Texts>, std::optional<std::string>> known;
  const auto [entry, is_new] = known.try_emplace({demand.is_unicast(), engine, beside});
  if (is_new) entry->second = outcome(demand, options_of(engine, beside));
  return entry->second;
}

/// The option's effect with every engine on one kind of demand.
class EveryEngine : public testing::TestWithParam<std::string> {
 protected:
  const SolveOption& option_ = find_solve_option(GetParam());
};

std::vector<std::string> observed_names() {
  std::vector<std::string> names;
  for (const auto& [name, beside] : observed()) names.push_back(name);
  return names;
}

/// What a record refuses changes nothing, and with some engine that it names a change shows.
TEST_P(EveryEngine, HeedsTheOptionOrItIsRefused) {
  std::set<std::string> seen;
  for (const Collective collective : {Collective::allgather, Collective::alltoall}) {
    const int parts = collective == Collective::alltoall ? 16 : 4;
    const Demand demand = make_demand(collective, parts * kBytesOfPart, 4, 1);
    for (const std::string& engine : engine_names()) {
      const Texts& beside = observed().at(option_.name);
      SolveOptions after = options_of(engine, beside);
      const std::vector<std::string>& policies = find_engine_or_auto(engine).policies;
      const bool takes_policy = option_.name == "policy" && !policies.empty();
      set_option(after, option_, takes_policy ? policies.back() : other_values().at(option_.name));
      const std::string why = why_ignored(option_, after, demand.is_unicast());
      // Without policies there is none to compare with.
      if (!why.empty() && option_.name == "policy") continue;
      const std::optional<std::string>& unchanged = outcome_before(demand, engine, beside);
      if (!unchanged || unchanged == outcome(demand, after)) continue;
      EXPECT_EQ(why, "") << "--" << option_.name << " is refused, but engine " << engine << " heeds it";
      seen.insert(engine);
    }
  }
  EXPECT_FALSE(seen.empty()) << "--" << option_.name << " changes nothing with any engine";
}

INSTANTIATE_TEST_SUITE_P(Options, EveryEngine, testing::ValuesIn(observed_names()), [](const auto& instance) {
  std::string name = instance.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(Options, EveryRecordIsProbedAndHeededBySomeEngine) {
  std::set<std::string> keys;
  for (const SolveOption& option : solve_options()) {
    EXPECT_EQ(other_values().count(option.name), 1U) << option.name;
    EXPECT_FALSE(engines_heeding(option).empty()) << option.name;
    EXPECT_TRUE(keys.insert(option.key).second) << option.key;
    EXPECT_FALSE(option.meaning.empty()) << option.name;
  }
  EXPECT_EQ(keys.size(), other_values().size());
}

TEST(Options, TextsAndValuesComeBack) {
  for (const SolveOption& option : solve_options()) {
    SolveOptions options = options_of("list", {});
    set_option(options, option, other_values().at(option.name));
    const OptionValue value = option.field.get(options);
    EXPECT_NE(value, option.field.get({})) << option.name;
    SolveOptions again = options_of("list", {});
    option.field.set(again, value, option.name);
    EXPECT_EQ(option.field.get(again), value) << option.name;
    const std::string text = option_text(options, option);
    set_option(again, option, text);
    EXPECT_EQ(option_text(again, option), text);
  }
}

TEST(Options, ValuesOutOfRangeAreRefusedByName) {
  const Texts bad{{"engine", "magic"},    {"policy", "magic"},
                  {"chunks", "0"},        {"min-chunk-bytes", "0"},
                  {"gap", "-1"},          {"time-limit", "0"},
                  {"improve-work", "-1"}, {"max-nodes", "-1"},
                  {"concurrency", "-1"},  {"seed", "-1"},
                  {"join", "maybe"},      {"symmetry", "maybe"},
                  {"lp-solver", "magic"}, {"lp-tolerance", "0.1"},
                  {"epoch", "0"},         {"epoch-multiplier", "0"},
                  {"epochs", "-1"},       {"epoch-spacing", "wide"},
                  {"decompose", "magic"}, {"parts", "-1"},
                  {"round-epochs", "-1"}, {"gamma", "x"},
                  {"start", "maybe"},     {"round-columns", "0"},
                  {"round-work", "nan"},  {"steps", "0"},
                  {"rounds", "0"},        {"max-conflicts", "-1"},
                  {"streams", "7"},       {"objective", "mean"}};
  for (const SolveOption& option : solve_options()) {
    if (option.name == "from" || option.name == "proof") continue;  // any path; opening it tells more
    ASSERT_EQ(bad.count(option.name), 1U) << option.name;
    SolveOptions options = options_of("list", {});
    try {
      set_option(options, option, bad.at(option.name));
      ADD_FAILURE() << option.name << " took " << bad.at(option.name);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage) << error.what();
      EXPECT_NE(std::string(error.what()).find(bad.at(option.name)), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace rondo::test_options
