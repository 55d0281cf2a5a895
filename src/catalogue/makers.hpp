#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rondo/catalogue/entry.hpp"

namespace rondo::catalogue {

/// An engine by itself, as it made a schedule.
struct Maker {
  std::string engine;
  std::string policy;
  std::uint64_t seed = 0;
  int chunks = 0;  ///< of a contribution

  friend bool operator==(const Maker&, const Maker&) = default;
};

/// Nothing where several had a part in it, as in halves, or what was adapted.
std::optional<Maker> maker_of(const Cell& cell, int chunks);

/// What made the schedules of the nearest sizes on both sides, in its numbers of chunks there and in one
/// between them; of one side alone, also in one towards the other: smaller sizes want fewer chunks.
std::vector<Maker> makers_between(const std::optional<Maker>& smaller, const std::optional<Maker>& larger);

}  // namespace rondo::catalogue
