#pragma once

#include <cstddef>
#include <limits>
#include <vector>

#include "rondo/mscclpp/unfolded.hpp"

namespace rondo::mscclpp {

/// An operation of a plan, in its threadblock (of several in a pipeline: the pipeline's number).
struct OpPlace {
  int gpu = 0;
  int tb = 0;
  int op = 0;
};

/// What of an operation's bytes is done at once: all of them, or one unit of a pipeline.
struct Unit {
  static constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
  std::size_t begin = 0;
  std::size_t bytes = kAll;
};

/// Where an operand is in memory: once, or of a group once a GPU. `letter` is l (local), r (remote) or g
/// (group), a capital where it holds packets. Throws Error(bad_data) for references to what is not there and
/// chunks outside of their buffer.
std::vector<Span> operand_spans(const Plan& plan, const Unfolded& unfolded, const OpPlace& where,
                                const Op& op, const Operand& operand, char letter, const Unit& unit);

}  // namespace rondo::mscclpp
