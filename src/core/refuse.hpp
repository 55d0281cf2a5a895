#pragma once

#include <string>

#include "rondo/core/error.hpp"

namespace rondo {

[[noreturn]] inline void refuse(const std::string& message) {
  throw Error(ExitCode::bad_data, message);
}

}  // namespace rondo
