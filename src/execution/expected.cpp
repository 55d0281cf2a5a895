#include "expected.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <type_traits>
#include <utility>

#include "numbers.hpp"

namespace rondo::execution {
namespace {

/// The finaliser of splitmix64.
std::uint64_t hash(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

template <std::floating_point T>
T number_of(std::uint64_t hash) {
  const double magnitude = 0.75 + 0.5 * std::ldexp(static_cast<double>(hash >> 11), -53);
  return static_cast<T>((hash & 1) != 0 ? -magnitude : magnitude);
}

/// What inputs are combined to, and the magnitude that its error is measured by.
struct Combined {
  Bytes bytes = {};
  std::vector<double> magnitude = {};
};

/// Each made once: many GPUs may want the same.
class CombinedInputs {
 public:
  CombinedInputs(const Program& program, int repetition) : program_(program), repetition_(repetition) {}

  const Combined& of(const std::vector<InputPlace>& from, std::size_t bytes) {
    const auto [it, is_new] = known_.try_emplace({from, bytes});
    if (is_new) combine(from, bytes, it->second);
    return it->second;
  }

 private:
  void combine(const std::vector<InputPlace>& from, std::size_t bytes, Combined& all) const {
    const bool rounds = from.size() > 1 && !program_.arithmetic.is_exact();
    all.bytes.resize(bytes);
    fill_input(program_, from.front(), all.bytes, repetition_);
    if (rounds) add_magnitudes(all.bytes, all.magnitude);
    Bytes next(bytes);
    for (std::size_t k = 1; k < from.size(); ++k) {
      fill_input(program_, from[k], next, repetition_);
      program_.arithmetic.combine(all.bytes, next);
      if (rounds && program_.arithmetic.reduction == Reduction::sum) add_magnitudes(next, all.magnitude);
    }
    if (rounds && program_.arithmetic.reduction == Reduction::prod) {
      all.magnitude.clear();
      add_magnitudes(all.bytes, all.magnitude);
    }
  }

  void add_magnitudes(const Bytes& numbers, std::vector<double>& magnitude) const {
    with_type(program_.arithmetic.number, [&](auto type) {
      using T = decltype(type);
      magnitude.resize(numbers.size() / sizeof(T), 0);
      for (std::size_t i = 0; i < magnitude.size(); ++i)
        magnitude[i] += std::abs(static_cast<double>(load<T>(numbers.data() + i * sizeof(T))));
    });
  }

  const Program& program_;
  int repetition_;
  std::map<std::pair<std::vector<InputPlace>, std::size_t>, Combined> known_;
};

}  // namespace

void fill_input(const Program& program, InputPlace begin, std::span<std::byte> bytes, int repetition) {
  const std::uint64_t stream =
      (static_cast<std::uint64_t>(begin.gpu) << 40) + (static_cast<std::uint64_t>(repetition) << 32);
  if (program.combines) {
    with_type(program.arithmetic.number, [&](auto type) {
      using T = decltype(type);
      for (std::size_t i = 0; i + sizeof(T) <= bytes.size(); i += sizeof(T)) {
        const std::uint64_t random = hash(stream + (begin.offset + i) / sizeof(T));
        if constexpr (std::is_floating_point_v<T>) {
          store(bytes.data() + i, number_of<T>(random));
        } else {
          store(bytes.data() + i, static_cast<T>(random));
        }
      }
    });
    return;
  }
  for (std::size_t i = 0; i < bytes.size();) {
    const std::uint64_t random = hash(stream + (begin.offset + i) / 8);
    for (std::size_t b = (begin.offset + i) % 8; b < 8 && i < bytes.size(); ++b, ++i)
      bytes[i] = static_cast<std::byte>(random >> (8 * b));
  }
}

std::vector<ExpectedOutput> expected_outputs(const Program& program, const Deal& deal, int repetition,
                                             std::byte filler) {
  std::vector<ExpectedOutput> outputs(program.memory.size());
  for (int g = deal.first_of(deal.rank); g < deal.first_of(deal.rank + 1); ++g) {
    const auto index = static_cast<std::size_t>(g);
    if (!program.coll->has_output(index, static_cast<std::size_t>(program.root))) continue;
    outputs[index].bytes.assign(program.output[index].bytes, filler);
  }
  const std::size_t size = program.arithmetic.size();
  const double eps = program.arithmetic.number == Number::float32 ? std::numeric_limits<float>::epsilon()
                                                                  : std::numeric_limits<double>::epsilon();
  CombinedInputs combined(program, repetition);
  for (const Delivery& d : program.deliveries) {
    if (!deal.mine(d.to)) continue;
    ExpectedOutput& output = outputs[static_cast<std::size_t>(d.to)];
    const auto place = std::span(output.bytes).subspan(d.output, d.bytes);
    if (d.from.size() == 1) {
      fill_input(program, d.from.front(), place, repetition);
      continue;
    }
    const Combined& all = combined.of(d.from, d.bytes);
    std::ranges::copy(all.bytes, place.begin());
    if (all.magnitude.empty()) continue;
    output.allowed.resize(output.bytes.size() / size, 0);
    for (std::size_t i = 0; i < all.magnitude.size(); ++i)
      output.allowed[d.output / size + i] = eps * static_cast<double>(d.from.size() - 1) * all.magnitude[i];
  }
  return outputs;
}

std::string first_difference(const Program& program, const ExpectedOutput& expected,
                             std::span<const std::byte> have, std::byte filler) {
  const auto note = [&](std::span<const std::byte> bytes) {
    const bool untouched = std::ranges::all_of(bytes, [&](std::byte b) { return b == filler; });
    return untouched ? " (never written, it seems)" : "";
  };
  if (!program.combines) {
    const auto [want, found] = std::ranges::mismatch(expected.bytes, have);
    if (want == expected.bytes.end()) return "";
    return fmt::format("byte {} of the output is 0x{:02x}{}, but {} asks for 0x{:02x}",
                       want - expected.bytes.begin(), std::to_integer<unsigned>(*found), note({&*found, 1}),
                       to_string(program.coll), std::to_integer<unsigned>(*want));
  }
  return with_type(program.arithmetic.number, [&](auto type) -> std::string {
    using T = decltype(type);
    for (std::size_t i = 0; (i + 1) * sizeof(T) <= expected.bytes.size(); ++i) {
      const T want = load<T>(expected.bytes.data() + i * sizeof(T));
      const T found = load<T>(have.data() + i * sizeof(T));
      if (want == found) continue;
      const double allowed = expected.allowed.empty() ? 0 : expected.allowed[i];
      if (std::abs(static_cast<double>(want) - static_cast<double>(found)) <= allowed) continue;
      const std::string within = allowed > 0 ? fmt::format(" within {:.3g}", allowed) : "";
      return fmt::format("number {} of the output is {}{}, but {} ({} of {}) asks for {}{}", i, found,
                         note(have.subspan(i * sizeof(T), sizeof(T))), to_string(program.coll),
                         to_string(program.arithmetic.reduction), to_string(program.arithmetic.number), want,
                         within);
    }
    return "";
  });
}

}  // namespace rondo::execution
