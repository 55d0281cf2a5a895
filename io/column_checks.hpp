#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// What the columns of a `rondo-schedule` file are checked for. All throw Error(bad_data) that names the
/// column and the value.
namespace rondo {

[[noreturn]] void refuse_column(const std::string& message);

/// That `name` has as many values as `as_in`.
void check_length(const char* name, std::size_t length, std::size_t expected, const char* as_in);
/// That all values are from `least` to `count` - 1.
void check_range(const char* name, const std::vector<std::int64_t>& values, std::size_t count,
                 std::int64_t least = 0);
void check_finite(const std::string& name, double value);
void check_finite(const char* name, const std::vector<double>& values);
/// That `index` is the offsets of one list of `total` values for each row of `as_in`.
void check_offsets(const char* name, const std::vector<std::int64_t>& index, std::size_t rows,
                   std::size_t total, const char* as_in);

}  // namespace rondo
