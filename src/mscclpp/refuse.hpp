#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

#include "rondo/core/error.hpp"

namespace rondo::mscclpp {

/// Throws Error(bad_data): what is wrong with a plan, and where.
template <class... Arguments>
[[noreturn]] void refuse(const std::string& where, fmt::format_string<Arguments...> format,
                         Arguments&&... arguments) {
  throw Error(ExitCode::bad_data, where + ": " + fmt::format(format, std::forward<Arguments>(arguments)...));
}

}  // namespace rondo::mscclpp
