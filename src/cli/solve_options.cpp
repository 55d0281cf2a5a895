#include "solve_options.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "rondo/core/error.hpp"
#include "rondo/core/nearest.hpp"
#include "rondo/pipeline/registry.hpp"

namespace rondo::cli {
namespace {

Json to_json(const OptionValue& value) {
  struct AsJson {
    Json operator()(std::monostate) const { return nullptr; }
    Json operator()(std::int64_t whole) const { return whole; }
    Json operator()(double number) const { return number; }
    Json operator()(const std::string& word) const { return word; }
  };
  return std::visit(AsJson{}, value);
}

OptionValue from_json(const Json& json) {
  if (json.is_null()) return {};
  if (json.is_number_integer()) return json.get<std::int64_t>();
  if (json.is_number()) return json.get<double>();
  return json.get<std::string>();
}

bool is_of(const SolveOption& option, const std::string& command) {
  return std::ranges::find(option.commands, command) != option.commands.end();
}

/// " [engines lp, milp]" where not all heed it.
std::string engines_of(const SolveOption& option) {
  const std::vector<std::string> engines = engines_heeding(option);
  if (engines.size() > engine_registry().size()) return "";
  return fmt::format(" [engine{} {}]", engines.size() == 1 ? "" : "s", join(engines));
}

}  // namespace

Option option_of(const SolveOption& option) {
  return {option.name, option.metavar, option_text({}, option), option.meaning + engines_of(option)};
}

std::vector<OptionGroup> option_groups_of(const std::string& command) {
  std::vector<OptionGroup> groups;
  for (const SolveOption& option : solve_options()) {
    if (option.group.empty() || !is_of(option, command)) continue;
    auto group = std::ranges::find(groups, option.group, &OptionGroup::title);
    if (group == groups.end()) group = groups.insert(group, {option.group, {}});
    group->options.push_back(option_of(option));
  }
  return groups;
}

SolveOptions read_solve_options(const Settings& settings, const std::string& command) {
  SolveOptions options;
  for (const SolveOption& option : solve_options()) {
    if (is_of(option, command) && settings.is_given(option.name))
      set_option(options, option, settings.text(option.name));
  }
  return options;
}

void refuse_ignored(const Settings& settings, const std::string& command, const SolveOptions& options,
                    bool is_unicast) {
  for (const SolveOption& option : solve_options()) {
    if (is_of(option, command))
      settings.refuse_ignored(option.name, why_ignored(option, options, is_unicast));
  }
}

Json solve_options_to_json(const SolveOptions& options) {
  Json json;
  for (const SolveOption& option : solve_options()) json[option.key] = to_json(option.field.get(options));
  return json;
}

SolveOptions solve_options_from_json(const Json& json) {
  try {
    SolveOptions options;
    for (const SolveOption& option : solve_options()) {
      if (json.contains(option.key)) option.field.set(options, from_json(json.at(option.key)), option.key);
    }
    return options;
  } catch (const Json::exception& error) {
    throw Error(ExitCode::bad_data, fmt::format("options of problem.json: {}", error.what()));
  } catch (const Error& error) {
    throw Error(ExitCode::bad_data, fmt::format("options of problem.json: {}", error.what()));
  }
}

}  // namespace rondo::cli
