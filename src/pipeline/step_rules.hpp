#pragma once

#include "rondo/pipeline/synthesize.hpp"

/// Which steps of the main job a problem takes.
namespace rondo {

/// Whether the engine asked for works in rounds.
bool works_in_rounds(const Problem& problem);
/// Whether local search knows plans of the demand: of data with one source.
bool local_search_applies(const Problem& problem);
/// Whether local search may follow the engine asked for.
bool may_improve(const Problem& problem);
/// Whether local search follows, and begins with replanting.
bool replanting_follows(const Problem& problem);
/// Whether transfers may be joined afterwards: messages cost, and --join and --improve-work allow it.
bool may_join(const Problem& problem);

/// Whether each rank may hold a part of the schedule alone: local search does not take so many transfers, the
/// replay goes in parts, and no GPU only passes on what it does not want, so that figures of memory need no
/// sends.
bool may_be_dealt(const Problem& problem, int chunks);

/// Whether a kept schedule is adapted to the problem with little work, rather than used as one more candidate
/// of a search that a gap or a time limit ends.
bool is_adapted(const Problem& problem);

/// The problem as it is solved: uneven contributions in parts of about one size.
Problem in_parts(const Problem& problem);

}  // namespace rondo
