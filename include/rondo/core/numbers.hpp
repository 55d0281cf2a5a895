#pragma once

#include <cstdint>
#include <limits>
#include <string>

/// Numbers as a user writes them. `what` ("--gap") names the number in the message of the Error(usage) that
/// every reader throws for a text it does not take.
namespace rondo {

/// A finite number.
double parse_number(const std::string& text, const std::string& what);
/// The same; "1%" is 0.01.
double parse_fraction(const std::string& text, const std::string& what);
/// A whole number from `least` to `most`.
std::int64_t parse_whole(const std::string& text, const std::string& what, std::int64_t least,
                         std::int64_t most = std::numeric_limits<std::int64_t>::max());

/// Throws the Error(usage) that a value out of its range is worth: "--parts is '-1'; it has to be ...".
[[noreturn]] void refuse_value(const std::string& what, const std::string& value, const std::string& wanted);

}  // namespace rondo
