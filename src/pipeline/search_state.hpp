#pragma once

#include <cstddef>
#include <limits>
#include <map>
#include <memory>
#include <vector>

#include "portfolio.hpp"
#include "rondo/engines/engine.hpp"
#include "rondo/parallel/communicator.hpp"
#include "rondo/parallel/messages.hpp"

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

/// The best schedule of every engine that found one, in the order of the engines; of equal ones the first.
std::vector<Trial> best_by_engine(const std::vector<Trial>& trials);
/// The best schedule of every number of chunks that one was found with.
std::map<int, SynthesisResult::Trade> best_by_chunks(const std::vector<Trial>& trials);

std::size_t most_sends_on_a_link(const Schedule& schedule, const Topology& topology);

/// Positions of the best improvable schedules, one a number of chunks, ascending.
std::vector<std::size_t> best_improvable(const std::vector<Trial>& trials);

auto members_of(SameAs<Candidate> auto& c) {
  return std::tie(c.engine, c.chunks, c.policy, c.seed, c.work);
}
auto members_of(SameAs<Trial> auto& t) {
  return std::tie(t.candidate, t.finish_us, t.sends, t.most_sends_on_a_link, t.improvable);
}

/// A state and the packed result of its best trial (empty where there is none), as a checkpoint keeps them.
Bytes pack_search(const SearchState& state, const Bytes& best);
struct PackedSearch {
  SearchState state;
  std::shared_ptr<EngineResult> best;
};
PackedSearch unpack_search(const Bytes& bytes);

Bytes pack_result(const EngineResult& result);
EngineResult unpack_result(const Bytes& bytes);

}  // namespace rondo
