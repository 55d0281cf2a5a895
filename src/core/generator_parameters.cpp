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

bool is_bandwidth(const std::optional<double>& value) {
  return value && std::isfinite(*value) && *value > 0;
}

}  // namespace

Parameters::Parameters(std::string_view family, const ParameterList& known, const ParameterValues& given)
    : family_(family) {
  std::vector<std::string> names;
  for (const GeneratorParameter& parameter : known) {
    values_[parameter.name] = parameter.default_value;
    names.push_back(parameter.name);
  }
  for (const auto& [name, value] : given) {
    if (!values_.contains(name)) {
      throw Error(ExitCode::usage, fmt::format("{} has no parameter '{}'; its parameters are {}", family_,
                                               name, fmt::join(names, ", ")));
    }
    values_[name] = value;
  }
}

void Parameters::refuse(const std::string& name, const std::string& remedy) const {
  throw Error(ExitCode::usage,
              fmt::format("{}: {} is '{}'; it has to be {}", family_, name, text(name), remedy));
}

std::size_t Parameters::count(const std::string& name, std::size_t least) const {
  const auto value = parse<std::size_t>(text(name));
  if (!value || *value < least) refuse(name, fmt::format("a whole number, {} or more", least));
  if (*value > kMaxNodes) {
    throw Error(ExitCode::unavailable,
                fmt::format("{}: {} is {}; the cap is {}", family_, name, *value, kMaxNodes));
  }
  return *value;
}

bool Parameters::flag(const std::string& name) const {
  return choice(name, {"true", "false"}) == "true";
}

const std::string& Parameters::choice(const std::string& name,
                                      const std::vector<std::string>& choices) const {
  const std::string& value = text(name);
  if (std::find(choices.begin(), choices.end(), value) == choices.end()) {
    refuse(name, fmt::format("{}", fmt::join(choices, " or ")));
  }
  return value;
}

std::vector<std::size_t> Parameters::dims(const std::string& name) const {
  std::vector<std::size_t> result;
  std::size_t total = 1;
  for (const std::string_view part : split(text(name), 'x')) {
    const auto value = parse<std::size_t>(part);
    if (!value || *value < 2) refuse(name, "one or more whole numbers, each 2 or more, such as 8x8 or 4x4x4");
    if (*value > kMaxNodes / total) {
      throw Error(ExitCode::unavailable, fmt::format("{}: {} is '{}'; at most {} nodes are supported",
                                                     family_, name, text(name), kMaxNodes));
    }
    total *= *value;
    result.push_back(*value);
  }
  return result;
}

std::vector<double> Parameters::bandwidth_per_dim(const std::string& name, std::size_t num_dims) const {
  const std::vector<std::string_view> parts = split(text(name), ',');
  std::vector<double> result;
  for (const std::string_view part : parts) {
    const auto value = parse<double>(part);
    if (!is_bandwidth(value))
      refuse(name, "positive and finite, one value or one a dimension, such as 50,75");
    result.push_back(*value);
  }
  if (result.size() == 1) result.resize(num_dims, result.front());
  if (result.size() != num_dims) refuse(name, fmt::format("one value or {}, one a dimension", num_dims));
  return result;
}

double Parameters::latency(const std::string& name) const {
  const auto value = parse<double>(text(name));
  if (!value || !std::isfinite(*value) || *value < 0) refuse(name, "0 or more and finite, in microseconds");
  return *value;
}

LinkFigures Parameters::link(const std::string& bandwidth_name, const std::string& latency_name) const {
  const auto bandwidth = parse<double>(text(bandwidth_name));
  if (!is_bandwidth(bandwidth)) refuse(bandwidth_name, "positive and finite, in GB/s");
  return {*bandwidth, latency(latency_name)};
}

}  // namespace rondo
