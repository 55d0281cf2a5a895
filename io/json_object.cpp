#include "rondo/io/json_object.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "format_version.hpp"

namespace rondo {
namespace {

constexpr std::size_t kMaxShownBytes = 60;

/// A value for a message: scalars as they stand, arrays and objects by their kind.
std::string shown(const Json& value) {
  if (value.is_array()) return "an array";
  if (value.is_object()) return "an object";
  std::string text = value.dump(-1, ' ', true);  // ASCII only, so that it can be cut anywhere
  if (text.size() > kMaxShownBytes) text = text.substr(0, kMaxShownBytes) + "...";
  return text;
}

[[noreturn]] void refuse_value(const std::string& place, const Json& value, const std::string& expected) {
  throw Error(ExitCode::bad_data, fmt::format("{} is {}; it has to be {}", place, shown(value), expected));
}

std::string expected_integer(IntegerRange range) {
  if (range.greatest < range.least) return "an integer that exists, but there is nothing to refer to";
  return fmt::format("an integer from {} to {}", range.least, range.greatest);
}

std::optional<std::int64_t> to_integer(const Json& value, IntegerRange range) {
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned() &&
      value.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    return std::nullopt;
  }
  const auto number = value.get<std::int64_t>();
  if (number < range.least || number > range.greatest) return std::nullopt;
  return number;
}

const Json& require_array(const Json& value, const std::string& place) {
  if (!value.is_array()) refuse_value(place, value, "an array");
  return value;
}

bool contains(std::initializer_list<std::string_view> keys, std::string_view key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

}  // namespace

std::string member_place(const std::string& place, std::string_view key) {
  return place.empty() ? std::string(key) : fmt::format("{}.{}", place, key);
}

std::string element_place(const std::string& place, std::size_t index) {
  return fmt::format("{}[{}]", place, index);
}

JsonObject::JsonObject(const Json& json, std::string place) : json_(json), place_(std::move(place)) {
  if (!json_.is_object()) refuse_value(place_.empty() ? "the document" : place_, json_, "an object");
}

void JsonObject::check_keys(std::initializer_list<std::string_view> known,
                            std::initializer_list<std::string_view> unsupported) const {
  for (const auto& [key, value] : json_.items()) {
    if (contains(known, key) || contains(unsupported, key)) continue;
    refuse(fmt::format("unknown key '{}'; known keys are {}", key.substr(0, kMaxShownBytes),
                       fmt::join(known, ", ")));
  }
  for (const std::string_view key : unsupported) {
    if (!json_.contains(key)) continue;
    refuse(fmt::format("'{}' is not supported yet; leave it out", key), ExitCode::unavailable);
  }
}

int JsonObject::check_format(const std::string& name) const {
  const Json& format = at("format");
  if (format != name) refuse_value(place_of("format"), format, fmt::format("\"{}\"", name));
  const Json& version = at("version");
  if (version != 1 && version != kNewestVersion)
    refuse_value(place_of("version"), version, fmt::format("1 or {}, a version there is", kNewestVersion));
  return version.get<int>();
}

void JsonObject::check_version(int version, std::initializer_list<std::string_view> newest) const {
  if (version >= kNewestVersion) return;
  for (const std::string_view key : newest) {
    if (!json_.contains(key)) continue;
    refuse(fmt::format("'{}' is of version {}; this file says that it is of version {}", key, kNewestVersion,
                       version));
  }
}

const Json& JsonObject::at(const char* key) const {
  const auto found = json_.find(key);
  if (found == json_.end()) refuse(fmt::format("key '{}' is missing", key));
  return *found;
}

const Json& JsonObject::array(const char* key) const {
  return require_array(at(key), place_of(key));
}

double JsonObject::number(const char* key) const {
  const Json& value = at(key);
  if (!value.is_number()) refuse_value(place_of(key), value, "a number");
  return value.get<double>();
}

std::int64_t JsonObject::integer(const char* key, IntegerRange range) const {
  const Json& value = at(key);
  const auto number = to_integer(value, range);
  if (!number) refuse_value(place_of(key), value, expected_integer(range));
  return *number;
}

bool JsonObject::flag_or(const char* key, bool fallback) const {
  if (!has(key)) return fallback;
  const Json& value = at(key);
  if (!value.is_boolean()) refuse_value(place_of(key), value, "true or false");
  return value.get<bool>();
}

std::string JsonObject::text(const char* key, std::size_t max_bytes) const {
  const Json& value = at(key);
  if (!value.is_string()) refuse_value(place_of(key), value, "text in quotes");
  const auto& text = value.get_ref<const std::string&>();
  if (text.size() > max_bytes || text.find('\0') != std::string::npos) {
    refuse_value(place_of(key), value, fmt::format("text of at most {} bytes without NUL", max_bytes));
  }
  return text;
}

std::string JsonObject::text_or(const char* key, const std::string& fallback, std::size_t max_bytes) const {
  return has(key) ? text(key, max_bytes) : fallback;
}

std::vector<double> JsonObject::numbers(const char* key) const {
  return numbers_of(at(key), place_of(key));
}

std::vector<double> JsonObject::numbers_or_null(const char* key) const {
  std::vector<double> numbers;
  for (const Json& value : array(key)) {
    if (!value.is_number() && !value.is_null())
      refuse_value(element_place(place_of(key), numbers.size()), value, "a number or null");
    numbers.push_back(value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>());
  }
  return numbers;
}

std::vector<std::int64_t> JsonObject::integers(const char* key, IntegerRange range) const {
  return integers_of(at(key), place_of(key), range);
}

void JsonObject::refuse(const std::string& message, ExitCode code) const {
  throw Error(code, fmt::format("{}: {}", place_.empty() ? "top level" : place_, message));
}

std::vector<double> numbers_of(const Json& array, const std::string& place) {
  std::vector<double> numbers;
  numbers.reserve(require_array(array, place).size());
  for (const Json& value : array) {
    if (!value.is_number()) refuse_value(element_place(place, numbers.size()), value, "a number");
    numbers.push_back(value.get<double>());
  }
  return numbers;
}

std::vector<std::int64_t> integers_of(const Json& array, const std::string& place, IntegerRange range) {
  std::vector<std::int64_t> integers;
  integers.reserve(require_array(array, place).size());
  for (const Json& value : array) {
    const auto number = to_integer(value, range);
    if (!number) refuse_value(element_place(place, integers.size()), value, expected_integer(range));
    integers.push_back(*number);
  }
  return integers;
}

}  // namespace rondo
