#pragma once

#include <gtest/gtest.h>

#include <cstddef>

#include "rondo/core/schedule.hpp"

namespace rondo {

/// Expects the same sends in the same order, their times equal to the bit.
inline void expect_same_sends(const Schedule& a, const Schedule& b) {
  ASSERT_EQ(a.sends.size(), b.sends.size());
  for (std::size_t s = 0; s < a.sends.size(); ++s) {
    EXPECT_EQ(a.sends[s].chunk, b.sends[s].chunk) << "send " << s;
    EXPECT_EQ(a.sends[s].link, b.sends[s].link) << "send " << s;
    EXPECT_EQ(a.sends[s].start_us, b.sends[s].start_us) << "send " << s;
    EXPECT_EQ(a.sends[s].arrival_us, b.sends[s].arrival_us) << "send " << s;
  }
}

}  // namespace rondo
