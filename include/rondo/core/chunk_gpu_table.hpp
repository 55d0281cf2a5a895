#pragma once

#include <vector>

#include "rondo/core/collective.hpp"
#include "rondo/core/ids.hpp"

namespace rondo {

/// One value for each chunk and GPU of a demand.
template <class T>
class ChunkGpuTable {
 public:
  ChunkGpuTable(const Demand& demand, T value)
      : num_gpus_(demand.num_gpus()), values_(demand.num_chunks() * num_gpus_, value) {}

  T& operator()(ChunkId c, GpuId g) { return values_[c.index() * num_gpus_ + g.index()]; }
  const T& operator()(ChunkId c, GpuId g) const { return values_[c.index() * num_gpus_ + g.index()]; }

 private:
  std::size_t num_gpus_;
  std::vector<T> values_;
};

}  // namespace rondo
