#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rondo/core/rate_account.hpp"
#include "rondo/core/retimer.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/engines/engine_row.hpp"

/// What becomes of a kept schedule on another fabric, or at another size.
namespace rondo {

struct Problem;  // rondo/pipeline/synthesize.hpp

/// The first send over a link that `topology` does not have, and that link; empty where all are there.
/// `links` as matching_links() gives them.
std::string missing_link(const ProvenSchedule& kept, const Topology& topology,
                         const std::vector<LinkId>& links);

/// The same chunks, paths and order, timed anew (rondo/core/retiming.hpp) and replayed. `demand` has the
/// chunks of the kept one, perhaps in other bytes. Sums for one GPU each are timed as what spreads backwards,
/// where that works: what a GPU passes on has come to it by then, in whatever time. Throws Error(bad_data)
/// where a link is gone, Error(unavailable) where the order does not work there, saying what to do instead.
Schedule replayed_elsewhere(const ProvenSchedule& kept, const Topology& topology, const Demand& demand,
                            int concurrency = kAnyConcurrency);

/// The same at several sizes: what does not depend on them is found once.
class ReplayElsewhere {
 public:
  /// Keeps references to both. `demand`: of any size. Throws Error(bad_data) where a link is gone.
  ReplayElsewhere(const ProvenSchedule& kept, const Topology& topology, const Demand& demand);
  ReplayElsewhere(ReplayElsewhere&&) noexcept;
  ~ReplayElsewhere();

  Schedule at(const Demand& demand, int concurrency = kAnyConcurrency);
  /// When that would end if the replay accepts it, which takes as long again: to see where to look.
  double guess_us(const Demand& demand);

 private:
  struct Backwards;
  Retimer& forwards();

  const ProvenSchedule& kept_;
  const Topology& topology_;
  std::vector<LinkId> links_;
  std::unique_ptr<Backwards> backwards_;  ///< of sums for one GPU each, where that is the same
  std::optional<Retimer> forwards_;       ///< once it is asked for
};

/// Chunks a contribution of the problem's demand in which the kept schedule moves the same data. Throws
/// Error(bad_data), naming what differs, where it moves other data, other nodes or, where transfers cannot be
/// rerouted (sums for several GPUs, copies in switches), goes over links that are gone; Error(usage) for
/// another --chunks.
int chunks_of_kept(const ProvenSchedule& kept, const Problem& problem);

/// Whether synthesize() looks first at what becomes of the kept schedule alone, rerouted and improved: with
/// engine auto, where local search can do some rounds on it with a small share of the work. Throws as
/// chunks_of_kept() does.
bool is_adapted_first(const Problem& problem);

/// Of a problem with sums for one GPU each, the kept schedule of its transposed.
ProvenSchedule transposed(const ProvenSchedule& kept);

/// "kept": the engine that gives the problem's kept schedule, timed anew ("order") or with transfers that
/// take other paths ("rerouted").
EngineInfo kept_engine(const Problem& problem);

/// The same engine with what became of the kept schedule there, rerouted and improved: `adapted`, in `chunks`
/// a contribution.
EngineInfo kept_engine(Schedule adapted, int chunks);

}  // namespace rondo
