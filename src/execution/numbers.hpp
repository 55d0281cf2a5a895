#pragma once

#include <algorithm>
#include <concepts>
#include <cstring>

#include "rondo/execution/arithmetic.hpp"

namespace rondo::execution {

/// Calls `work` with a value of the type that `number` names.
template <class Work>
decltype(auto) with_type(Number number, const Work& work) {
  switch (number) {
    case Number::int64:
      return work(std::int64_t{});
    case Number::float32:
      return work(float{});
    case Number::float64:
      return work(double{});
    case Number::uint8:
      break;
  }
  return work(std::uint8_t{});
}

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <class T>
void store(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

template <std::integral T>
T combined(Reduction reduction, T a, T b) {
  switch (reduction) {
    case Reduction::sum:
      return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
    case Reduction::prod:
      return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
    case Reduction::max:
      return std::max(a, b);
    case Reduction::min:
      break;
  }
  return std::min(a, b);
}

template <std::floating_point T>
T combined(Reduction reduction, T a, T b) {
  switch (reduction) {
    case Reduction::sum:
      return a + b;
    case Reduction::prod:
      return a * b;
    case Reduction::max:
      return std::max(a, b);
    case Reduction::min:
      break;
  }
  return std::min(a, b);
}

}  // namespace rondo::execution
