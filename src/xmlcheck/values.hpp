#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace rondo::xmlcheck {

/// What a cell of memory may hold: nothing yet, or a sum of input chunks with how often each is in it. Equal
/// values have equal ids.
class Values {
 public:
  using Id = int;
  static constexpr Id kUndefined = 0;

  Values() { intern({}); }

  /// Chunk `offset` of the input of `gpu`.
  Id input(int gpu, int offset) { return intern({{{gpu, offset}, 1}}); }
  Id sum(Id a, Id b) {
    const auto [known, is_new] = sum_of_.try_emplace(std::minmax(a, b), kUndefined);
    if (is_new) known->second = intern(merged(terms(a), terms(b)));
    return known->second;
  }

  /// Input chunks (gpu, offset) in ascending order, with their number.
  using Chunk = std::pair<int, int>;
  using Terms = std::vector<std::pair<Chunk, std::int64_t>>;
  const Terms& terms(Id id) const { return *sums_[static_cast<std::size_t>(id)]; }

  /// "nothing", "i[3] of gpu 2", "the sum of 4 chunks".
  std::string describe(Id id) const;

 private:
  static Terms merged(const Terms& a, const Terms& b);
  Id intern(Terms terms);

  std::map<Terms, Id> ids_;
  std::size_t num_terms_ = 0;       ///< in all that was ever asked for: each took its time
  std::vector<const Terms*> sums_;  ///< per id: the key in ids_
  std::map<std::pair<Id, Id>, Id> sum_of_;
};

}  // namespace rondo::xmlcheck
