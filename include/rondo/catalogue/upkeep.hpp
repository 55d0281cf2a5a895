#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rondo/catalogue/folder.hpp"
#include "rondo/pipeline/run_context.hpp"

namespace rondo::catalogue {

struct Verified {
  std::size_t cells = 0;
  std::size_t borders = 0;
  std::vector<std::string> faults = {};  ///< one sentence each, naming the file
};

/// Collective. Replays the schedule of every cell at its size on its fabric, derives its bound from the
/// certificate, and replays both schedules on both sides of every border; dealt over the ranks.
Verified verify(const Folder& folder, const RunContext& context);

/// What becomes of a cell on other figures.
enum class Verdict {
  kept,   ///< as near to its bound there as before, or as the tolerance asks
  stale,  ///< to be solved again: the gap grew beyond the tolerance
  broken  ///< a link is gone, or the order does not work there
};
const char* to_string(Verdict verdict);

/// The greatest gap at which a cell of gap `before` is kept: (1 + gap) grew by the tolerance at most.
double greatest_kept_gap(double before, double tolerance);

struct Checked {
  Series series;  ///< the one that was checked
  double size_bytes = 0;
  Verdict verdict = Verdict::kept;
  double finish_before_us = 0;
  double gap_before = 0;
  double finish_us = 0;  ///< there; infinity where it is broken
  double bound_us = 0;
  double gap = 0;
  std::string reason = {};  ///< of a broken one
};

/// Collective. Every cell of the fabric `fingerprint` replayed on `topology`, with its bound there; dealt
/// over the ranks. Refused cells are left out.
std::vector<Checked> check(const Folder& folder, const std::string& fingerprint,
                           const std::shared_ptr<const Topology>& topology, double tolerance,
                           const RunContext& context);

/// What to do with a cell that both catalogues have, made differently.
enum class SameCell { refuse, best };

struct Merged {
  std::size_t cells = 0;   ///< that came
  std::size_t equal = 0;   ///< that both had
  std::size_t better = 0;  ///< that both had, where the other's ends earlier
  std::size_t worse = 0;
};
/// Adds the cells of `from`. With `refuse`, throws Error(bad_data) naming the first cell that both have with
/// different schedules, before anything is changed. Bins and index are to be made anew.
Merged merge(const Folder& folder, const Folder& from, SameCell same);

struct Pruned {
  std::size_t cells = 0;
  std::size_t schedules = 0;
  std::uintmax_t bytes = 0;  ///< of these schedules
};
/// Removes the cells of all fabrics but `keep` (empty: of none), then schedules that no cell uses in a
/// finished series. The index is to be made anew.
Pruned prune(const Folder& folder, const std::vector<std::string>& keep);

}  // namespace rondo::catalogue
