#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "replay_internal.hpp"

/// What the derivation of sums keeps of one chunk.
namespace rondo::replay_internal {

inline constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

/// Sets of sources, each of the same number of words.
class SetTable {
 public:
  using Set = std::span<std::uint64_t>;
  using ConstSet = std::span<const std::uint64_t>;

  void reset(std::size_t sets, std::size_t sources) {
    words_ = (sources + 63) / 64;
    bits_.assign(sets * words_, 0);
  }
  Set operator[](std::size_t i) { return std::span(bits_).subspan(i * words_, words_); }
  std::size_t add() {
    bits_.resize(bits_.size() + words_, 0);
    return bits_.size() / words_ - 1;
  }

 private:
  std::size_t words_ = 0;
  std::vector<std::uint64_t> bits_;
};

inline bool is_empty(SetTable::ConstSet set) {
  return std::ranges::all_of(set, [](std::uint64_t w) { return w == 0; });
}
inline int count(SetTable::ConstSet set) {
  int result = 0;
  for (const std::uint64_t w : set) result += std::popcount(w);
  return result;
}
inline void insert(SetTable::Set set, std::size_t i) {
  set[i / 64] |= std::uint64_t{1} << (i % 64);
}
inline bool contains(SetTable::ConstSet set, std::size_t i) {
  return ((set[i / 64] >> (i % 64)) & 1) != 0;
}
inline void assign(SetTable::Set to, SetTable::ConstSet from) {
  std::ranges::copy(from, to.begin());
}
/// The first element for which `keep(word of a, word of b)` has a bit; kNone where there is none.
template <class Keep>
inline std::size_t first_of(SetTable::ConstSet a, SetTable::ConstSet b, Keep keep) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (const std::uint64_t word = keep(a[i], b[i]); word != 0)
      return 64 * i + static_cast<std::size_t>(std::countr_zero(word));
  }
  return kNone;
}
inline std::size_t first_in_both(SetTable::ConstSet a, SetTable::ConstSet b) {
  return first_of(a, b, [](std::uint64_t x, std::uint64_t y) { return x & y; });
}
inline std::size_t first_missing(SetTable::ConstSet of, SetTable::ConstSet in) {
  return first_of(of, in, [](std::uint64_t x, std::uint64_t y) { return x & ~y; });
}
inline void unite(SetTable::Set set, SetTable::ConstSet other) {
  for (std::size_t i = 0; i < set.size(); ++i) set[i] |= other[i];
}

/// A sum that waits in a store-and-forward switch.
struct StoredSum {
  Stay stay;
  std::size_t set;
};

/// A chunk at a GPU or a store-and-forward switch.
struct Place {
  NodeId node;
  std::vector<std::size_t> in;        ///< sends that enter, by arrival
  std::vector<double> instants;       ///< when what arrives at one time begins to arrive
  std::vector<std::size_t> in_begin;  ///< instant i brings in[in_begin[i]] .. in[in_begin[i + 1]]
  std::vector<std::size_t> out;       ///< sends that leave, by start
  std::vector<std::size_t> unknown;   ///< per instant: sends whose content is not known yet
  std::size_t done = 0;               ///< instants that count already
  std::size_t left = 0;               ///< sends that have left
  double own_us = 0;                  ///< GPU: from when its own data, or the sum it brought, counts
  std::size_t own = kNone;            ///< GPU: that set, until it counts
  std::size_t set = kNone;            ///< GPU: what it holds
  double whole_us = -1;               ///< GPU: since when that is the whole sum; negative: it is not
  std::vector<std::size_t> stays;     ///< switch: positions in stays_, by arrival
  std::size_t sent_on = 0;            ///< switch: the first so many have been sent on
  std::size_t adding = kNone;         ///< switch: the last of the stays that began with op reduce

  /// Keeps the memory.
  void clear() {
    for (auto* list : {&in, &in_begin, &out, &unknown, &stays}) list->clear();
    instants.clear();
    done = left = sent_on = 0;
    own = set = adding = kNone;
    own_us = 0;
    whole_us = -1;
  }

  /// Arrivals within the tolerance of the first of them are one instant.
  void find_instants(std::span<const Send> sends) {
    std::ranges::sort(in, {},
                      [&](std::size_t s) { return std::tuple(sends[s].arrival_us, sends[s].link, s); });
    for (std::size_t i = 0; i < in.size(); ++i) {
      const double arrival = sends[in[i]].arrival_us;
      if (instants.empty() || arrival - instants.back() > tolerance_us(arrival, instants.back())) {
        in_begin.push_back(i);
        instants.push_back(arrival);
        unknown.push_back(0);
      }
      ++unknown.back();
    }
    in_begin.push_back(in.size());
  }
  std::span<std::size_t> at_instant(std::size_t i) {
    return std::span(in).subspan(in_begin[i], in_begin[i + 1] - in_begin[i]);
  }
  std::size_t instant_of(double arrival_us) const {
    return static_cast<std::size_t>(std::ranges::upper_bound(instants, arrival_us) - instants.begin()) - 1;
  }
};

/// The places of one chunk; their memory is kept for the next one.
class Places {
 public:
  explicit Places(std::size_t num_nodes) : position_(num_nodes, kNone) {}

  /// A new one where there is none.
  Place& at(NodeId n) {
    std::size_t& position = position_[n.index()];
    if (position == kNone) {
      position = count_++;
      if (position == places_.size()) places_.emplace_back();
      places_[position].clear();
      places_[position].node = n;
    }
    return places_[position];
  }
  bool has(NodeId n) const { return position_[n.index()] != kNone; }
  std::span<Place> all() { return std::span(places_).first(count_); }
  void clear() {
    for (const Place& place : all()) position_[place.node.index()] = kNone;
    count_ = 0;
  }

 private:
  std::vector<Place> places_;
  std::size_t count_ = 0;
  std::vector<std::size_t> position_;  ///< per node
};

}  // namespace rondo::replay_internal
