#include "scenario_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "fabrics.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/nearest.hpp"
#include "rondo/core/retiming.hpp"
#include "rondo/core/units.hpp"
#include "rondo/core/verify.hpp"
#include "rondo/core/version.hpp"
#include "rondo/io/bound_files.hpp"
#include "rondo/io/read_as.hpp"
#include "rondo/io/topology_files.hpp"
#include "rondo/pipeline/kept_schedule.hpp"

namespace rondo::cli {
namespace {

[[noreturn]] void refuse_file(const std::string& why) {
  throw Error(ExitCode::bad_data, why);
}

void check_keys_of(const Json& json, const std::vector<std::string>& known, const std::string& where) {
  if (!json.is_object()) refuse_file(fmt::format("{} is {}; it is an object", where, json.dump()));
  for (const auto& [key, value] : json.items()) {
    if (std::ranges::find(known, key) == known.end())
      refuse_file(
          fmt::format("{} has the key '{}', which is unknown{}", where, key, did_you_mean(key, known)));
  }
}

ScenarioObjective objective_of(const Json& json) {
  const Json word = json.value("objective", Json("worst"));
  if (word == "worst") return ScenarioObjective::worst;
  if (word == "mean") return ScenarioObjective::mean;
  refuse_file(fmt::format("objective is {}; it is \"worst\" or \"mean\"", word.dump()));
}

std::string word_of(ScenarioObjective objective) {
  return objective == ScenarioObjective::worst ? "worst" : "mean";
}

/// The options of the same names, as an entry of the file has them.
const std::vector<std::string>& changes() {
  static const std::vector<std::string> names{"degrade",       "degrade-seed",    "without",
                                              "scale-latency", "scale-bandwidth", "switch-forwarding"};
  return names;
}

Topology fabric_of_entry(const Json& entry, const Topology& own) {
  std::vector<std::string> arguments;
  for (const auto& [key, value] : entry.items()) {
    if (std::ranges::find(changes(), key) == changes().end()) continue;
    if (!value.is_string() && !value.is_number())
      refuse_file(fmt::format("{} is {}; write it as --{} has it", key, value.dump(), key));
    arguments.insert(arguments.end(),
                     {"--" + key, value.is_string() ? value.get<std::string>() : value.dump()});
  }
  const Settings settings = parse_settings({fabric_options()}, "", arguments, nullptr);
  settings.refuse_ignored();
  if (!entry.contains("topology")) return changed_topology(own, settings);
  if (!entry["topology"].is_string())
    refuse_file(fmt::format("topology is {}; write it as --topology has it", entry["topology"].dump()));
  return changed_topology(load_topology(entry["topology"].get<std::string>()), settings);
}

Scenario read_entry(const Json& entry, std::size_t position, const Topology& own) {
  std::vector<std::string> known = changes();
  known.insert(known.end(), {"name", "topology"});
  const std::string where = fmt::format("scenarios[{}]", position);
  check_keys_of(entry, known, where);
  if (!entry.contains("name") || !entry["name"].is_string() || entry["name"] == "")
    refuse_file(fmt::format("{} has no name; give it one, such as \"name\": \"slow rail\"", where));
  const std::string name = entry["name"].get<std::string>();
  if (name == kOwnFabric)
    refuse_file(
        fmt::format("{} is named '{}', as the fabric of --topology is; choose another name", where, name));
  if (entry.size() == 1)
    refuse_file(fmt::format("scenario '{}' changes nothing; give topology, {}", name, join(changes())));
  try {
    auto topology = std::make_shared<const Topology>(fabric_of_entry(entry, own));
    matching_links(own, *topology);
    return {name, std::move(topology)};
  } catch (const Error& error) {
    const ExitCode code = error.code() == ExitCode::usage ? ExitCode::bad_data : error.code();
    throw Error(code, fmt::format("scenario '{}': {}", name, error.what()));
  }
}

Scenarios read_entries(const Json& json, const Topology& own) {
  check_keys_of(json, {"format", "version", "objective", "scenarios"}, "the file");
  if (json.value("format", Json()) != "rondo-scenarios" || json.value("version", Json()) != 1) {
    refuse_file(
        "this is no rondo-scenarios of version 1; begin with {\"format\": \"rondo-scenarios\", "
        "\"version\": 1, \"scenarios\": [...]}");
  }
  Scenarios scenarios{objective_of(json)};
  const Json entries = json.value("scenarios", Json());
  if (!entries.is_array() || entries.empty())
    refuse_file(
        "scenarios has no entry; give at least one, such as {\"name\": \"slow\", \"degrade\": \"0.1:0.5\"}");
  for (std::size_t i = 0; i < entries.size(); ++i) {
    scenarios.all.push_back(read_entry(entries[i], i, own));
    for (std::size_t k = 0; k < i; ++k) {
      if (scenarios.all[k].name == scenarios.all[i].name)
        refuse_file(
            fmt::format("two scenarios are named '{}'; give each a name of its own", scenarios.all[i].name));
    }
  }
  return scenarios;
}

}  // namespace

Option scenarios_option() {
  return {"scenarios", "FILE", "",
          "other fabrics (JSON of format rondo-scenarios) that the schedule is to be good on too: of the "
          "schedules made for each of them, the one whose worst or mean finish over all is least"};
}

std::shared_ptr<const Scenarios> read_scenarios(const Settings& settings, const Topology& own) {
  if (!settings.has("scenarios")) return nullptr;
  return std::make_shared<const Scenarios>(
      read_as(settings.text("scenarios"), [&](const Json& json) { return read_entries(json, own); }));
}

Json scenarios_to_json(const Scenarios& scenarios) {
  Json fabrics = Json::array();
  for (const Scenario& scenario : scenarios.all)
    fabrics.push_back({{"name", scenario.name}, {"topology", topology_to_json(*scenario.topology)}});
  return {{"objective", word_of(scenarios.objective)}, {"fabrics", std::move(fabrics)}};
}

std::shared_ptr<const Scenarios> scenarios_from_json(const Json& json) {
  Scenarios scenarios{objective_of(json)};
  for (const Json& fabric : json.at("fabrics")) {
    scenarios.all.push_back({fabric.at("name").get<std::string>(),
                             std::make_shared<const Topology>(topology_from_json(fabric.at("topology")))});
  }
  return std::make_shared<const Scenarios>(std::move(scenarios));
}

Json robustness_to_json(const Robustness& robustness) {
  Json each = Json::array();
  for (const ScenarioOutcome& outcome : robustness.each) {
    each.push_back({{"name", outcome.name}, {"finish_us", outcome.finish_us}});
    if (outcome.lower_bound) each.back()["lower_bound"] = lower_bound_to_json(*outcome.lower_bound);
  }
  return {{"objective", word_of(robustness.objective)},
          {"made_for", robustness.made_for},
          {"finish_us", robustness.figure_us()},
          {"lower_bound_us", robustness.bound_us()},
          {"own_us", std::isfinite(robustness.own_us) ? Json(robustness.own_us) : Json(nullptr)},
          {"each", std::move(each)}};
}

void check_scenarios(const Json& report, const ProvenSchedule& proven, const Scenarios* asked,
                     int concurrency) {
  constexpr double kSame = 1e-9;
  if (report.contains("scenarios") != (asked != nullptr))
    throw Error(ExitCode::bad_data, asked ? "scenarios is missing" : "scenarios are not of this problem");
  if (!asked) return;
  const Json& there = report.at("scenarios");
  std::vector<Scenario> fabrics{{kOwnFabric, std::make_shared<const Topology>(proven.topology)}};
  fabrics.insert(fabrics.end(), asked->all.begin(), asked->all.end());
  Robustness again{.objective = asked->objective, .made_for = there.at("made_for").get<std::string>()};
  again.own_us = there.at("own_us").is_null() ? INFINITY : there.at("own_us").get<double>();
  const Json& each = there.at("each");
  for (std::size_t f = 0; f < std::min(fabrics.size(), each.size()); ++f) {
    const Topology& topology = *fabrics[f].topology;
    ProvenSchedule timed{topology, proven.demand,
                         replayed_elsewhere(proven, topology, proven.demand, concurrency), std::nullopt,
                         producer()};
    if (each[f].contains("lower_bound")) {
      timed.lower_bound =
          lower_bound_from_json(each[f].at("lower_bound"), fmt::format("scenarios.each[{}]", f));
    }
    verify(timed);
    const double said_us = each[f].at("finish_us").get<double>();
    const double finish_us = timed.schedule.finish_us;
    again.each.push_back({fabrics[f].name,
                          std::abs(said_us - finish_us) <= kSame * finish_us ? said_us : finish_us,
                          timed.lower_bound});
  }
  if (const Json expected = robustness_to_json(again); expected != there) {
    throw Error(ExitCode::bad_data, fmt::format("scenarios is not what the schedule gives: {}",
                                                Json::diff(there, expected).front().dump()));
  }
}

std::string scenarios_of_report(const Json& report) {
  if (!report.contains("scenarios")) return "";
  const Json& scenarios = report.at("scenarios");
  std::string text;
  for (const Json& each : scenarios.at("each")) {
    text += fmt::format("scenario {}: finish {:.6g} us", each.at("name").get<std::string>(),
                        each.at("finish_us").get<double>());
    if (each.contains("lower_bound"))
      text += fmt::format(", bound {:.6g} us", each.at("lower_bound").at("us").get<double>());
    text += "\n";
  }
  const Json& own = scenarios.at("own_us");
  return text +
         fmt::format(
             "{} finish {:.6g} us, bound {:.6g} us; made for {}; what is made for the fabric alone: {}\n",
             scenarios.at("objective").get<std::string>(), scenarios.at("finish_us").get<double>(),
             scenarios.at("lower_bound_us").get<double>(), scenarios.at("made_for").get<std::string>(),
             own.is_null() ? "goes over links that others lack"
                           : fmt::format("{:.6g} us", own.get<double>()));
}

}  // namespace rondo::cli
