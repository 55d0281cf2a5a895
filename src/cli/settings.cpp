#include "settings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <sstream>

#include "rondo/core/error.hpp"
#include "rondo/core/nearest.hpp"
#include "rondo/core/numbers.hpp"

namespace po = boost::program_options;

namespace rondo::cli {
namespace {

constexpr unsigned kHelpColumns = 110;

[[noreturn]] void refuse(const std::string& message) {
  throw Error(ExitCode::usage, message);
}

po::options_description describe(const OptionGroup& group) {
  po::options_description description(group.title, kHelpColumns, kHelpColumns / 2);
  for (const Option& option : group.options) {
    if (option.value.empty()) {
      description.add_options()(option.name.c_str(), po::bool_switch(), option.help.c_str());
      continue;
    }
    if (option.repeats) {
      description.add_options()(option.name.c_str(),
                                po::value<std::vector<std::string>>()->value_name(option.value),
                                option.help.c_str());
      continue;
    }
    auto* value = po::value<std::string>()->value_name(option.value);
    if (!option.default_value.empty()) value->default_value(option.default_value);
    description.add_options()(option.name.c_str(), value, option.help.c_str());
  }
  return description;
}

po::options_description describe(const std::vector<OptionGroup>& groups) {
  po::options_description all;
  for (const OptionGroup& group : groups) all.add(describe(group));
  return all;
}

std::vector<std::string> names_of(const std::vector<OptionGroup>& groups) {
  std::vector<std::string> names;
  for (const OptionGroup& group : groups) {
    for (const Option& option : group.options) names.push_back(option.name);
  }
  return names;
}

/// Boost.Program_options puts a value into its message wherever that says %value%: without end where the
/// value says so itself. The same holds for the other names between percent signs.
void refuse_placeholders(const std::string& text, const std::string& where) {
  for (std::size_t at = text.find('%'); at != std::string::npos; at = text.find('%', at + 1)) {
    const std::size_t end = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_", at + 1);
    if (end == std::string::npos || text[end] != '%' || end == at + 1) continue;
    refuse(fmt::format("{}'{}' may not stand in an option", where, text.substr(at, end + 1 - at)));
  }
}

/// Runs `parse`; what Boost.Program_options throws becomes an Error whose message begins with `where`.
template <class Parse>
void translating_errors(const std::vector<OptionGroup>& groups, const std::string& where,
                        const Parse& parse) {
  try {
    parse();
  } catch (const po::unknown_option& error) {
    std::string name = error.get_option_name();
    name.erase(0, name.find_first_not_of('-'));
    refuse(fmt::format("{}option '{}' is unknown{}; --help lists all", where, name,
                       did_you_mean(name, names_of(groups)) + if_family_parameter(name)));
  } catch (const po::error& error) {
    refuse(fmt::format("{}{}; see --help", where, error.what()));
  }
}

/// Arguments without dashes become the value of `positional`, of which there is one.
void assign_positional(po::parsed_options& parsed, const std::string& positional) {
  bool assigned = false;
  for (po::option& option : parsed.options) {
    if (option.position_key < 0) continue;
    if (positional.empty() || assigned) {
      refuse(fmt::format("argument '{}' is one too many; options begin with --, see --help",
                         option.value.empty() ? "" : option.value.front()));
    }
    assigned = true;
    option.string_key = positional;
    option.position_key = -1;
  }
}

Settings settings_of(const std::vector<OptionGroup>& groups, const std::string& positional,
                     const po::variables_map& map) {
  std::map<std::string, std::string> values;
  std::set<std::string> given;
  for (const OptionGroup& group : groups) {
    for (const Option& option : group.options) {
      if (map.count(option.name) == 0) continue;
      const po::variable_value& value = map[option.name];
      if (option.repeats) {
        values[option.name] = fmt::format("{}", fmt::join(value.as<std::vector<std::string>>(), "\n"));
      } else {
        values[option.name] =
            option.value.empty() ? (value.as<bool>() ? "true" : "false") : value.as<std::string>();
      }
      const bool is_off = option.value.empty() && !value.as<bool>();
      if (!value.defaulted() && !is_off) given.insert(option.name);
    }
  }
  return {groups, positional, std::move(values), std::move(given)};
}

}  // namespace

Settings parse_settings(const std::vector<OptionGroup>& groups, const std::string& positional,
                        const std::vector<std::string>& arguments,
                        const std::function<std::string(const std::string&)>& read_file) {
  const po::options_description description = describe(groups);
  // Guessing is off: an abbreviation that is unique today may be another option tomorrow.
  const int style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
  po::variables_map map;
  for (const std::string& argument : arguments) refuse_placeholders(argument, "");
  translating_errors(groups, "", [&] {
    auto parsed = po::command_line_parser(arguments).options(description).style(style).run();
    assign_positional(parsed, positional);
    po::store(parsed, map);
  });
  if (map.count("config") > 0) {
    const auto path = map["config"].as<std::string>();
    const std::string text = read_file(path);
    refuse_placeholders(text, path + ": ");
    std::istringstream config(text);
    translating_errors(groups, path + ": ",
                       [&] { po::store(po::parse_config_file(config, description), map); });
  }
  return settings_of(groups, positional, map);
}

std::string describe_options(const std::vector<OptionGroup>& groups) {
  std::ostringstream text;
  for (const OptionGroup& group : groups) text << describe(group) << '\n';
  return text.str();
}

OptionGroup common_options() {
  return {"General",
          {{"config", "FILE", "", "read options from FILE, one 'name = value' a line; the command line wins"},
           {"print-config", "", "",
            "print the options that are set, and defaults as comments, in the form --config reads, and stop"},
           {"help", "", "", "print this and stop"}}};
}

const Option& Settings::option(const std::string& name) const {
  for (const OptionGroup& group : groups_) {
    for (const Option& option : group.options) {
      if (option.name == name) return option;
    }
  }
  throw Error(ExitCode::internal, fmt::format("option '{}' was never declared", name));
}

std::string Settings::shown(const std::string& name) const {
  return name == positional_ ? option(name).value : "--" + name;
}

bool Settings::has(const std::string& name) const {
  const auto found = values_.find(name);
  return found != values_.end() && !(option(name).value.empty() && found->second == "false");
}

const std::string& Settings::text(const std::string& name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) refuse(fmt::format("{} is missing: {}", shown(name), option(name).help));
  return found->second;
}

std::vector<std::string> Settings::texts(const std::string& name) const {
  std::vector<std::string> lines;
  if (!has(name)) return lines;
  std::istringstream text(values_.at(name));
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

std::int64_t Settings::integer(const std::string& name, std::int64_t least, std::int64_t most) const {
  return parse_whole(text(name), shown(name), least, most);
}

std::uint64_t Settings::seed(const std::string& name) const {
  return static_cast<std::uint64_t>(integer(name, 0));
}

double Settings::positive(const std::string& name) const {
  const double result = parse_number(text(name), shown(name));
  if (result <= 0) refuse_value(shown(name), text(name), "more than 0");
  return result;
}

double Settings::fraction(const std::string& name) const {
  const double result = parse_fraction(text(name), shown(name));
  if (result < 0) refuse_value(shown(name), text(name), "0 or more");
  return result;
}

void Settings::refuse_ignored(const std::string& name, const std::string& why_ignored) const {
  if (!is_given(name) || why_ignored.empty()) return;
  const std::string value = option(name).value.empty() ? "given" : fmt::format("'{}'", text(name));
  refuse(fmt::format("{} is {}, but {}", shown(name), value, why_ignored));
}

void Settings::refuse_ignored() const {
  for (const OptionGroup& group : groups_) {
    for (const Option& option : group.options) {
      if (is_given(option.name) && option.why_ignored) refuse_ignored(option.name, option.why_ignored(*this));
    }
  }
}

std::string Settings::to_config() const {
  std::string config;
  for (const OptionGroup& group : groups_) {
    for (const Option& option : group.options) {
      const auto found = values_.find(option.name);
      if (found == values_.end() || option.name == "config" || option.name == "print-config" ||
          option.name == "help") {
        continue;
      }
      for (const std::string& value : option.repeats ? texts(option.name) : std::vector{found->second}) {
        if (value.empty() || value.find_first_of("#\n\r") != std::string::npos || value.front() == ' ' ||
            value.back() == ' ') {
          refuse(
              fmt::format("{} is '{}', which a configuration file cannot hold: it cuts values at '#' and at "
                          "the end of a line, and blanks around them",
                          shown(option.name), value));
        }
        config += fmt::format("{}{} = {}\n", is_given(option.name) ? "" : "# ", option.name, value);
      }
    }
  }
  return config;
}

}  // namespace rondo::cli
