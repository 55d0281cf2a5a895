#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <vector>

#include "portfolio.hpp"
#include "rondo/engines/engine.hpp"
#include "rondo/parallel/communicator.hpp"

namespace rondo {

inline constexpr std::size_t kNoTrial = std::numeric_limits<std::size_t>::max();

/// How far the portfolio's search is after a whole number of batches.
struct SearchState {
  std::size_t batches = 0;         ///< finished
  int idle_batches = 0;            ///< in a row that varied the best and found nothing better
  double work = 0;                 ///< of all candidates
  std::vector<Trial> trials = {};  ///< in the order of their making
  std::size_t best = kNoTrial;     ///< of the trials; of equal ones the first

  double best_finish_us() const;
};

/// A state and the packed result of its best trial (empty where there is none), as a checkpoint keeps them.
Bytes pack_search(const SearchState& state, const Bytes& best);
struct PackedSearch {
  SearchState state;
  std::shared_ptr<const EngineResult> best;
};
PackedSearch unpack_search(const Bytes& bytes);

Bytes pack_result(const EngineResult& result);
EngineResult unpack_result(const Bytes& bytes);

}  // namespace rondo
