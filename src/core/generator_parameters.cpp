#include "generator_parameters.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "rondo/core/error.hpp"

namespace rondo {
namespace {

template <class Number>
std::optional<Number> parse(std::string_view text) {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

bool is_within(const ParameterRange& range, std::string_view text) {
  if (range.is_whole && !parse<std::size_t>(text)) return false;
  const auto value = parse<double>(text);
  return value && std::isfinite(*value) && *value <= range.most &&
         (range.may_be_least ? *value >= range.least : *value > range.least);
}

}  // namespace

bool ParameterRange::accepts(std::string_view text) const {
  if (std::find(words.begin(), words.end(), text) != words.end()) return true;
  if (!is_number) return false;
  if (separator == 0) return is_within(*this, text);
  const auto numbers = split(text, separator);
  return std::all_of(numbers.begin(), numbers.end(),
                     [&](std::string_view number) { return is_within(*this, number); });
}

std::string ParameterRange::describe() const {
  if (!is_number) return fmt::format("{}", fmt::join(words, " or "));
  std::string text = is_whole ? "a whole number, " : "";
  if (std::isfinite(most)) {
    text += fmt::format("{} to {}", least, most);
  } else {
    text += may_be_least ? fmt::format("{} or more", least) : fmt::format("more than {}", least);
  }
  if (separator != 0) text += fmt::format("; several with '{}' in between", separator);
  for (const std::string& word : words) text += fmt::format(", or '{}'", word);
  return text;
}

ParameterRange whole_number(std::size_t least) {
  return {.least = static_cast<double>(least), .is_whole = true};
}
ParameterRange whole_number(std::size_t least, std::size_t most) {
  return {.least = static_cast<double>(least), .most = static_cast<double>(most), .is_whole = true};
}
ParameterRange positive() {
  return {.may_be_least = false};
}
ParameterRange not_negative() {
  return {};
}
ParameterRange one_of(std::vector<std::string> words) {
  return {.is_number = false, .words = std::move(words)};
}
ParameterRange several(ParameterRange range, char separator) {
  range.separator = separator;
  return range;
}

GeneratorParameter message_cost(const std::string& which) {
  return {"message_us", fmt::format("for which every message keeps {} besides its bytes, us", which), "0",
          not_negative()};
}
GeneratorParameter inter_message_cost(const std::string& which) {
  return {"inter_message_us", fmt::format("the same of {}, us", which), "0", not_negative()};
}

Topology TopologyGenerator::generate(const std::map<std::string, std::string>& values) const {
  return build(Parameters(*this, values));
}

Parameters::Parameters(const TopologyGenerator& family, const std::map<std::string, std::string>& given)
    : family_(family.name) {
  std::vector<std::string> names;
  for (const GeneratorParameter& parameter : family.parameters) {
    const auto found = given.find(parameter.name);
    const std::string& value = found == given.end() ? parameter.default_value : found->second;
    values_[parameter.name] = value;
    names.push_back(parameter.name);
    if (!parameter.range.accepts(value)) refuse(parameter.name, parameter.range.describe());
  }
  for (const auto& [name, value] : given) {
    if (values_.contains(name)) continue;
    throw Error(ExitCode::usage, fmt::format("{} has no parameter '{}'; its parameters are {}", family_, name,
                                             fmt::join(names, ", ")));
  }
}

void Parameters::refuse(const std::string& name, const std::string& remedy) const {
  throw Error(ExitCode::usage,
              fmt::format("{}: {} is '{}'; it has to be {}", family_, name, text(name), remedy));
}

std::size_t Parameters::count(const std::string& name) const {
  const std::size_t value = parse<std::size_t>(text(name)).value();
  if (value > kMaxNodes) {
    throw Error(ExitCode::unavailable,
                fmt::format("{}: {} is {}; the cap is {}", family_, name, value, kMaxNodes));
  }
  return value;
}

std::vector<std::size_t> Parameters::dims(const std::string& name) const {
  std::vector<std::size_t> result;
  std::size_t total = 1;
  for (const std::string_view part : split(text(name), 'x')) {
    const std::size_t value = parse<std::size_t>(part).value();
    if (value > kMaxNodes / total) {
      throw Error(ExitCode::unavailable, fmt::format("{}: {} is '{}'; at most {} nodes are supported",
                                                     family_, name, text(name), kMaxNodes));
    }
    total *= value;
    result.push_back(value);
  }
  return result;
}

double Parameters::number(const std::string& name) const {
  return parse<double>(text(name)).value();
}

std::vector<double> Parameters::bandwidth_per_dim(const std::string& name, std::size_t num_dims) const {
  std::vector<double> result;
  for (const std::string_view part : split(text(name), ',')) result.push_back(parse<double>(part).value());
  if (result.size() == 1) result.resize(num_dims, result.front());
  if (result.size() != num_dims) refuse(name, fmt::format("one value or {}, one a dimension", num_dims));
  return result;
}

LinkFigures Parameters::link(const std::string& bandwidth_name, const std::string& latency_name,
                             const std::string& message_name) const {
  return {number(bandwidth_name), number(latency_name), number(message_name)};
}

}  // namespace rondo
