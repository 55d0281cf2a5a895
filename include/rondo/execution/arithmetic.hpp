#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace rondo::execution {

/// What the bytes of a collective that combines are.
enum class Number : std::uint8_t { uint8, int64, float32, float64 };
/// How it combines them.
enum class Reduction : std::uint8_t { sum, prod, max, min };

/// Numbers and what is made of them. Whole numbers wrap around, as MPI's and NCCL's do.
struct Arithmetic {
  Number number = Number::uint8;
  Reduction reduction = Reduction::sum;

  /// Bytes of a number.
  std::size_t size() const;
  /// Whether every order of combining gives the same bits.
  bool is_exact() const;
  /// Combines every number of `into` with its counterpart in `other`; both as long, in whole numbers.
  void combine(std::span<std::byte> into, std::span<const std::byte> other) const;
};

/// "int64", "sum": as the command line spells them, reductions as MSCCL XML does too. Throw Error(usage) with
/// the known names.
Number parse_number_type(std::string_view name);
Reduction parse_reduction(std::string_view name);
std::string_view to_string(Number number);
std::string_view to_string(Reduction reduction);

}  // namespace rondo::execution
