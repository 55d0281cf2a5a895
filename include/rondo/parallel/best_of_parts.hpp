#pragma once

#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "rondo/parallel/map_parts.hpp"
#include "rondo/parallel/messages.hpp"

namespace rondo {

/// What best_of_parts() has found; `value` on `rank` alone, something else on the others.
template <class Quality, class Value>
struct BestOfParts {
  std::vector<Quality> qualities = {};  ///< of all parts
  Quality quality = {};
  int rank = -1;
  Value value = {};
};

/// Collective. Of what `make(part)` gives for the parts 0 .. parts - 1, each made on one rank, the pair
/// (quality, value) of least quality, of equal ones the first part's: only qualities travel, and the same
/// wins on any number of ranks. All parts count as equal work. Throws the first part's Error.
template <class Make>
auto best_of_parts(const Communicator& communicator, std::size_t parts, const Make& make) {
  using Made = std::invoke_result_t<const Make&, std::size_t>;
  using Quality = typename Made::first_type;
  BestOfParts<Quality, typename Made::second_type> best;
  std::optional<std::pair<Quality, std::size_t>> best_here;  // of equal ones the first part's
  const auto outcomes = map_parts(communicator, std::vector<double>(parts, 1.0), [&](std::size_t part) {
    Made made = make(part);
    if (const std::pair here(made.first, part); !best_here || here < *best_here) {
      best_here = here;
      best.value = std::move(made.second);
    }
    return to_message(made.first);
  });
  for (const PartOutcome& outcome : outcomes) {
    if (outcome.error) throw *outcome.error;
    const auto quality = from_message<Quality>(outcome.value);
    best.qualities.push_back(quality);
    if (best.rank >= 0 && !(quality < best.quality)) continue;
    best.quality = quality;
    best.rank = outcome.rank;
  }
  return best;
}

/// Collective. The value that won, on every rank.
template <class Quality, class Value>
Value shared_winner(const Communicator& communicator, const BestOfParts<Quality, Value>& best) {
  const Bytes message = communicator.rank() == best.rank ? to_message(best.value) : Bytes();
  return from_message<Value>(communicator.broadcast(message, best.rank));
}

}  // namespace rondo
