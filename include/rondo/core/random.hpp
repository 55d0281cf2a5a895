#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <utility>

namespace rondo {

/// The finaliser of MurmurHash3: a cheap, well-spread tie-break.
inline std::uint64_t mix_bits(std::uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdULL;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ULL;
  return x ^ (x >> 33);
}

/// Pseudo-random numbers that are the same on every machine and library (the standard's distributions are
/// not).
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  std::uint64_t next() { return engine_(); }
  /// Uniform in [0, n), n > 0.
  std::size_t below(std::size_t n) {
    const std::uint64_t limit = engine_.max() - engine_.max() % n;  // rejection: no value is favoured
    std::uint64_t value = next();
    while (value >= limit) value = next();
    return static_cast<std::size_t>(value % n);
  }
  /// Uniform in [0, 1).
  double unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  template <class T>
  void shuffle(std::span<T> values) {
    for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[below(i)]);
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace rondo
