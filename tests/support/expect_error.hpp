#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "rondo/core/error.hpp"

namespace rondo {

/// Expects Error(`code`) whose message contains every one of `parts`.
template <class Action>
void expect_error(ExitCode code, const std::vector<std::string>& parts, Action action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    for (const std::string& part : parts) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos)
          << "'" << part << "' is missing in: " << error.what();
    }
    return;
  }
  ADD_FAILURE() << "no error; expected one that mentions '" << (parts.empty() ? "" : parts.front()) << "'";
}

}  // namespace rondo
