#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "rondo/core/error.hpp"
#include "rondo/parallel/communicator.hpp"

namespace rondo {

/// What one part came to. A part that fails is data: the caller decides, alike on every rank.
struct PartOutcome {
  Bytes value = {};
  std::optional<Error> error = std::nullopt;
  int rank = 0;        ///< that worked on it
  double seconds = 0;  ///< wall, on that rank
};

/// Collective. Calls `work(part)` once for every part 0 .. work_estimates.size() - 1, each on one rank, and
/// returns all outcomes in part order on every rank. Parts are dealt by estimated work, largest first, to the
/// rank with the least so far. Ranks with common memory put theirs together, and each draws the next one when
/// it has done the one before: which rank works on a part, and in which order, differs from run to run. Ranks
/// without parts just take part in the gathering. Exceptions other than Error become Error(internal). `kin`:
/// see deal_parts(); a rank works on parts of one kin in a row.
std::vector<PartOutcome> map_parts(const Communicator& communicator,
                                   const std::vector<double>& work_estimates,
                                   const std::function<Bytes(std::size_t part)>& work,
                                   const std::vector<std::size_t>& kin = {});

}  // namespace rondo
