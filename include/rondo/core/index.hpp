#pragma once

#include <cstddef>

namespace rondo {

/// Of an element that is known to be there.
constexpr std::size_t index(int i) {
  return static_cast<std::size_t>(i);
}

}  // namespace rondo
