#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

#include "rondo/core/error.hpp"

namespace rondo {

/// Expects Error(`code`) whose message contains every one of `fragments`.
template <class Action>
void expect_error(ExitCode code, std::initializer_list<std::string> fragments, Action action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(static_cast<int>(error.code()), static_cast<int>(code)) << error.what();
    for (const std::string& fragment : fragments) {
      EXPECT_NE(std::string(error.what()).find(fragment), std::string::npos)
          << "'" << fragment << "' is missing in: " << error.what();
    }
    return;
  }
  ADD_FAILURE() << "no error; expected one that mentions '" << *fragments.begin() << "'";
}

}  // namespace rondo
