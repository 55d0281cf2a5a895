#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "hdf5_reader.hpp"

namespace rondo {

/// Of numbers that were read from the member `name`; below 0 they are refused.
template <class Id>
Id to_id(const Hdf5GroupReader& group, const char* name, std::int64_t value) {
  if (value < 0 || value > std::numeric_limits<std::int32_t>::max()) {
    group.refuse(name, fmt::format("{} is no id", value));
  }
  return Id(static_cast<std::int32_t>(value));
}

template <class Id>
std::vector<Id> to_ids(const Hdf5GroupReader& group, const char* name, std::span<const std::int64_t> values) {
  std::vector<Id> ids;
  for (const std::int64_t value : values) ids.push_back(to_id<Id>(group, name, value));
  return ids;
}

}  // namespace rondo
