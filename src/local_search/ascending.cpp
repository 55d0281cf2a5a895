#include "rondo/local_search/ascending.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>

#include "rondo/core/index.hpp"

namespace rondo {
namespace {

/// Fewer keys are sorted by comparing them.
constexpr std::size_t kFewKeys = 128;
constexpr int kDigitBits = 11;
constexpr int kDigits = (64 + kDigitBits - 1) / kDigitBits;

/// A key as an integer that orders alike, and its number.
struct Keyed {
  std::uint64_t bits;
  int number;
};

std::uint64_t ordered_bits(double key) {
  constexpr std::uint64_t kSign = std::uint64_t{1} << 63;
  const auto bits = std::bit_cast<std::uint64_t>(key + 0.0);  // no negative zero
  return (bits & kSign) != 0 ? ~bits : bits | kSign;
}

/// Digit by digit from the lowest, each in the order of the ones before; digits that all share are left out.
void sort_by_digits(std::vector<Keyed>& keys) {
  constexpr std::size_t kValues = std::size_t{1} << kDigitBits;
  const auto digit = [](const Keyed& key, int d) { return (key.bits >> (d * kDigitBits)) & (kValues - 1); };
  std::vector<std::uint32_t> count(kDigits * kValues, 0);
  for (const Keyed& key : keys) {
    for (int d = 0; d < kDigits; ++d) ++count[index(d) * kValues + digit(key, d)];
  }
  std::vector<Keyed> sorted(keys.size());
  for (int d = 0; d < kDigits; ++d) {
    const auto place = std::span(count).subspan(index(d) * kValues, kValues);
    if (place[digit(keys.front(), d)] == keys.size()) continue;
    std::exclusive_scan(place.begin(), place.end(), place.begin(), std::uint32_t{0});
    for (const Keyed& key : keys) sorted[place[digit(key, d)]++] = key;
    keys.swap(sorted);
  }
}

}  // namespace

std::vector<int> ascending(const std::vector<double>& key) {
  std::vector<Keyed> keyed(key.size());
  for (std::size_t i = 0; i < key.size(); ++i) keyed[i] = {ordered_bits(key[i]), static_cast<int>(i)};
  if (key.size() > kFewKeys) {
    sort_by_digits(keyed);
  } else {
    std::ranges::sort(keyed, {}, [](const Keyed& k) { return std::pair(k.bits, k.number); });
  }
  std::vector<int> order(key.size());
  std::ranges::transform(keyed, order.begin(), &Keyed::number);
  return order;
}

}  // namespace rondo
