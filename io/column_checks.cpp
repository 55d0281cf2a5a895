#include "column_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rondo/core/error.hpp"

namespace rondo {

void refuse_column(const std::string& message) {
  throw Error(ExitCode::bad_data, message);
}

void check_length(const char* name, std::size_t length, std::size_t expected, const char* as_in) {
  if (length == expected) return;
  refuse_column(fmt::format("{} has {} values; it has to have {}, as {}", name, length, expected, as_in));
}

void check_range(const char* name, const std::vector<std::int64_t>& values, std::size_t count,
                 std::int64_t least) {
  const std::int64_t most = static_cast<std::int64_t>(count) - 1;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] >= least && values[i] <= most) continue;
    refuse_column(
        fmt::format("{}[{}] is {}; it has to be an integer from {} to {}", name, i, values[i], least, most));
  }
}

void check_finite(const std::string& name, double value) {
  if (!std::isfinite(value)) refuse_column(fmt::format("{} is {}; it has to be finite", name, value));
}

void check_finite(const char* name, const std::vector<double>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) check_finite(fmt::format("{}[{}]", name, i), values[i]);
  }
}

void check_offsets(const char* name, const std::vector<std::int64_t>& index, std::size_t rows,
                   std::size_t total, const char* as_in) {
  if (index.empty()) refuse_column(fmt::format("{}_index is empty; it begins with 0", name));
  check_length(name, index.size() - 1, rows, as_in);
  if (index.front() != 0 || index.back() != static_cast<std::int64_t>(total) ||
      !std::is_sorted(index.begin(), index.end())) {
    refuse_column(fmt::format("{}_index has to ascend from 0 to {}, the number of values", name, total));
  }
}

}  // namespace rondo
