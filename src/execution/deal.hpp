#pragma once

#include <cstddef>
#include <cstdint>

#include "rondo/parallel/communicator.hpp"

namespace rondo::execution {

/// GPUs over ranks, in blocks of neighbours whose sizes differ by one at most.
struct Deal {
  int gpus = 0;
  int ranks = 1;
  int rank = 0;

  int first_of(int r) const { return static_cast<int>(static_cast<std::int64_t>(gpus) * r / ranks); }
  int rank_of(int gpu) const {
    int r = static_cast<int>((static_cast<std::int64_t>(gpu) * ranks) / gpus);
    while (first_of(r + 1) <= gpu) ++r;
    return r;
  }
  bool mine(int gpu) const { return gpu >= first_of(rank) && gpu < first_of(rank + 1); }
};

}  // namespace rondo::execution
