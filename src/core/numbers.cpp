#include "rondo/core/numbers.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "rondo/core/error.hpp"

namespace rondo {

void refuse_value(const std::string& what, const std::string& value, const std::string& wanted) {
  throw Error(ExitCode::usage, fmt::format("{} is '{}'; it has to be {}", what, value, wanted));
}

double parse_number(const std::string& text, const std::string& what) {
  double result = 0;
  const char* end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, result);
  if (code != std::errc{} || stop != end || !std::isfinite(result)) {
    throw Error(ExitCode::usage, fmt::format("{} is '{}', which is not a finite number", what, text));
  }
  return result;
}

double parse_fraction(const std::string& text, const std::string& what) {
  if (!text.ends_with('%')) return parse_number(text, what);
  return parse_number(text.substr(0, text.size() - 1), what) / 100;
}

std::int64_t parse_whole(const std::string& text, const std::string& what, std::int64_t least,
                         std::int64_t most) {
  std::int64_t result = 0;
  const char* end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, result);
  if (code != std::errc{} || stop != end || result < least || result > most)
    refuse_value(what, text, fmt::format("a whole number from {} to {}", least, most));
  return result;
}

}  // namespace rondo
