#pragma once

namespace rondo {

/// One callable of several lambdas, for std::visit.
template <class... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};

}  // namespace rondo
