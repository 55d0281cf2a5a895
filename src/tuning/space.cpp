#include "rondo/tuning/space.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>

#include "rondo/core/error.hpp"
#include "rondo/io/json_object.hpp"

namespace rondo::tuning {
namespace {

constexpr const char* kSpaceFormat = "rondo-tuning-space";
constexpr std::size_t kMostValues = 4096;

/// Values become words of a shell command.
bool is_plain_word(const std::string& word) {
  const auto is_plain = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '.' || c == '-' || c == '+' || c == ':' || c == '/';
  };
  return !word.empty() && word.size() <= 64 && std::ranges::all_of(word, is_plain);
}

bool is_name(const std::string& word) {
  const auto is_plain = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !word.empty() && word.size() <= 64 && std::ranges::all_of(word, is_plain);
}

double number_of(const std::string& text) {
  double value = std::numeric_limits<double>::quiet_NaN();
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

Parameter read_parameter(const JsonObject& object) {
  object.check_keys({"name", "values"});
  Parameter parameter{.name = object.text("name"), .values = {}};
  if (!is_name(parameter.name))
    object.refuse(fmt::format("name is '{}'; it has to be letters, digits and '_'", parameter.name));
  const Json& values = object.array("values");
  std::size_t numbers = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::string place = element_place(object.place_of("values"), i);
    if (values[i].is_number()) {
      parameter.values.push_back(format_number(values[i].get<double>()));
      ++numbers;
    } else if (values[i].is_string() && is_plain_word(values[i].get<std::string>())) {
      parameter.values.push_back(values[i].get<std::string>());
    } else {
      throw Error(ExitCode::bad_data,
                  place +
                      " has to be a number, or a word of letters, digits and _.-+:/ (it becomes a word "
                      "of a command)");
    }
  }
  parameter.is_ordered = numbers > 0;
  if (numbers > 0 && numbers < values.size())
    object.refuse("values are partly numbers and partly words; make them all the one or the other");
  return parameter;
}

}  // namespace

Space::Space(std::vector<Parameter> parameters, std::vector<AtLeast> conditions)
    : parameters_(std::move(parameters)), conditions_(std::move(conditions)) {
  if (parameters_.empty()) throw Error(ExitCode::bad_data, "the space has no parameters");
  std::set<std::string> names;
  for (const Parameter& parameter : parameters_) {
    const auto refuse = [&](const std::string& why) {
      throw Error(ExitCode::bad_data, fmt::format("parameter '{}' {}", parameter.name, why));
    };
    if (!names.insert(parameter.name).second) refuse("is there twice");
    if (parameter.values.empty() || parameter.values.size() > kMostValues)
      refuse(fmt::format("has {} values; it needs 1 to {}", parameter.values.size(), kMostValues));
    const std::set<std::string> distinct(parameter.values.begin(), parameter.values.end());
    if (distinct.size() < parameter.values.size()) refuse("has a value twice");
    for (std::size_t i = 1; parameter.is_ordered && i < parameter.values.size(); ++i) {
      if (number_of(parameter.values[i - 1]) >= number_of(parameter.values[i]))
        refuse("has numbers that do not ascend");
    }
    grid_ *= parameter.values.size();
    if (grid_ > kMostPoints) {
      throw Error(ExitCode::unavailable,
                  fmt::format("the space has more than {} points; leave values out", kMostPoints));
    }
  }
  for (std::size_t i = 0; i < grid_; ++i) {
    if (is_allowed(choice_of_grid(i))) points_.push_back(static_cast<std::uint32_t>(i));
  }
  if (points_.empty())
    throw Error(ExitCode::unavailable, "the space has no point that its conditions (at_least) allow");
}

Choice Space::choice_of_grid(std::size_t index) const {
  Choice choice(parameters_.size());
  for (std::size_t p = parameters_.size(); p-- > 0;) {
    choice[p] = static_cast<std::uint16_t>(index % parameters_[p].values.size());
    index /= parameters_[p].values.size();
  }
  return choice;
}

bool Space::is_allowed(const Choice& choice) const {
  return std::ranges::all_of(conditions_, [&](const AtLeast& condition) {
    const auto number = [&](std::size_t p) { return number_of(parameters_[p].values[choice[p]]); };
    return number(condition.larger) >= condition.factor * number(condition.smaller);
  });
}

std::size_t Space::parameter(const std::string& name) const {
  const auto found = std::ranges::find(parameters_, name, &Parameter::name);
  if (found == parameters_.end()) {
    std::string names;
    for (const Parameter& parameter : parameters_) names += (names.empty() ? "" : ", ") + parameter.name;
    throw Error(ExitCode::bad_data, fmt::format("the space has no parameter '{}'; it has {}", name, names));
  }
  return static_cast<std::size_t>(found - parameters_.begin());
}

Choice Space::choice(std::size_t point) const {
  return choice_of_grid(points_[point]);
}

const std::string& Space::value(std::size_t point, std::size_t parameter) const {
  return parameters_[parameter].values[choice(point)[parameter]];
}

double Space::number(std::size_t point, std::size_t parameter) const {
  return number_of(value(point, parameter));
}

std::size_t Space::nearest(const Choice& choice) const {
  std::size_t best = 0;
  std::size_t least = std::numeric_limits<std::size_t>::max();
  for (std::size_t i = 0; i < size(); ++i) {
    const Choice other = this->choice(i);
    std::size_t steps = 0;
    for (std::size_t p = 0; p < other.size(); ++p)
      steps += static_cast<std::size_t>(std::abs(int{other[p]} - int{choice[p]}));
    if (steps < least) {
      least = steps;
      best = i;
    }
  }
  return best;
}

std::string Space::text(std::size_t point) const {
  std::string text;
  const Choice choice = this->choice(point);
  for (std::size_t p = 0; p < choice.size(); ++p) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", parameters_[p].name,
                        parameters_[p].values[choice[p]]);
  }
  return text;
}

std::size_t Space::point(const std::string& text) const {
  for (std::size_t i = 0; i < size(); ++i) {
    if (this->text(i) == text) return i;
  }
  throw Error(ExitCode::usage,
              fmt::format("'{}' is no point of the space; one is '{}'", text, this->text(0)));
}

Json Space::to_json() const {
  Json parameters = Json::array();
  for (const Parameter& parameter : parameters_) {
    Json values = Json::array();
    for (const std::string& value : parameter.values)
      values.push_back(parameter.is_ordered ? Json(number_of(value)) : Json(value));
    parameters.push_back({{"name", parameter.name}, {"values", std::move(values)}});
  }
  Json conditions = Json::array();
  for (const AtLeast& condition : conditions_) {
    conditions.push_back({{"parameter", parameters_[condition.larger].name},
                          {"times", condition.factor},
                          {"of", parameters_[condition.smaller].name}});
  }
  return {{"format", kSpaceFormat},
          {"version", 1},
          {"parameters", std::move(parameters)},
          {"at_least", std::move(conditions)}};
}

Space space_from_json(const Json& json) {
  const JsonObject object(json, "");
  object.check_keys({"format", "version", "parameters", "at_least"});
  object.check_format(kSpaceFormat);
  std::vector<Parameter> parameters;
  object.for_each_object("parameters", [&](const JsonObject& parameter, std::size_t) {
    parameters.push_back(read_parameter(parameter));
  });
  std::vector<AtLeast> conditions;
  const auto index_of = [&](const JsonObject& condition, const char* key) {
    const std::string name = condition.text(key);
    const auto found = std::ranges::find(parameters, name, &Parameter::name);
    if (found == parameters.end() || !found->is_ordered)
      condition.refuse(fmt::format("{} is '{}', which is no parameter with numbers", key, name));
    return static_cast<std::size_t>(found - parameters.begin());
  };
  if (object.has("at_least")) {
    object.for_each_object("at_least", [&](const JsonObject& condition, std::size_t) {
      condition.check_keys({"parameter", "times", "of"});
      conditions.push_back(
          {index_of(condition, "parameter"), index_of(condition, "of"), condition.number_or("times", 1)});
    });
  }
  return Space(std::move(parameters), std::move(conditions));
}

Space tuccl_space() {
  std::vector<Parameter> parameters{{"protocol", {"LL", "LL128", "Simple"}, false},
                                    {"channels", {}, true},
                                    {"threads", {}, true},
                                    {"buffer_bytes", {}, true}};
  for (int i = 1; i <= 4; ++i) parameters[1].values.push_back(std::to_string(1 << i));
  for (int z = 1; z <= 20; ++z) parameters[2].values.push_back(std::to_string(32 * z));
  for (int j = 1; j <= 15; ++j) parameters[3].values.push_back(std::to_string(128 << j));
  return Space(std::move(parameters), {{2, 1, 32}});
}

}  // namespace rondo::tuning
