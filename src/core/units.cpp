#include "rondo/core/units.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "rondo/core/error.hpp"

namespace rondo {
namespace {

constexpr std::array<std::pair<std::string_view, double>, 8> kUnits = {{{"", 1},
                                                                        {"B", 1},
                                                                        {"KB", 1e3},
                                                                        {"MB", 1e6},
                                                                        {"GB", 1e9},
                                                                        {"KiB", 1024.0},
                                                                        {"MiB", 1024.0 * 1024},
                                                                        {"GiB", 1024.0 * 1024 * 1024}}};

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

[[noreturn]] void refuse(std::string_view text, std::string_view reason) {
  throw Error(
      ExitCode::usage,
      fmt::format("size '{}': {}; give a positive number and a unit out of B, KB, MB, GB, KiB, MiB, GiB, "
                  "such as 1GB or 64KiB",
                  text, reason));
}

}  // namespace

double parse_size(std::string_view text) {
  const std::string_view body = trimmed(text);
  double number = 0;
  const auto [end, error] = std::from_chars(body.data(), body.data() + body.size(), number);
  if (error == std::errc::result_out_of_range) refuse(text, "the number is out of range");
  if (error != std::errc{}) refuse(text, "it does not begin with a number");
  const std::string_view unit = trimmed(body.substr(static_cast<std::size_t>(end - body.data())));
  for (const auto& [name, factor] : kUnits) {
    if (unit != name) continue;
    const double bytes = number * factor;
    if (!std::isfinite(bytes)) refuse(text, "it is not finite");
    if (bytes <= 0) refuse(text, "it is not positive");
    return bytes;
  }
  refuse(text, fmt::format("'{}' is no unit", unit));
}

std::string format_size(double bytes) {
  constexpr std::array<const char*, 4> names = {"B", "KB", "MB", "GB"};
  std::size_t unit = 0;
  // 999.95 and more would be shown as 1000 of this unit.
  for (; unit + 1 < names.size() && std::abs(bytes) >= 999.95; ++unit) bytes /= 1e3;
  if (std::abs(bytes) >= 9999.5) return fmt::format("{:.0f} {}", bytes, names[unit]);
  return fmt::format("{:.4g} {}", bytes, names[unit]);
}

}  // namespace rondo
