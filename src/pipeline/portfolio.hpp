#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "rondo/core/collective.hpp"
#include "rondo/pipeline/registry.hpp"
#include "rondo/pipeline/synthesize.hpp"

/// Which engines, chunk counts, policies and seeds are tried, in which order. Pure: depends on the problem,
/// the options and earlier finish times alone, never on ranks or clocks.
namespace rondo {

struct Candidate {
  std::size_t engine = 0;  ///< position in the list of engines tried
  int chunks = 1;          ///< a contribution
  std::string policy = {};
  std::uint64_t seed = 0;
  double work = 1;  ///< sends, weighted: what the budget counts
};

struct Trial {
  Candidate candidate;
  double finish_us = 0;  ///< infinity where there is no schedule
  std::size_t sends = 0;
  std::size_t most_sends_on_a_link = 0;
  bool improvable = false;  ///< the engine tells the moves
};

/// Without a time limit the search ends at so much estimated work (ten times as many where a gap is asked
/// for), or after so many rounds in a row that found nothing better, once there were enough candidates or a
/// third of the work.
inline constexpr double kWorkBudget = 2.5e6;
/// The share of it that is enough where local search begins with replanting: that is told little by starts.
inline constexpr double kShareBeforeReplanting = 0.3;

/// First the engines that are quick; of a part of another problem in many chunks before few. Then
/// one batch a chunk count, or several where candidates are much work, ascending until half of `budget` is
/// planned: every engine with all of its policies, or with as many as are affordable, those that did best in
/// `trials`. Unicast demand is tried in 3, 6, 12, ... chunks then, with the best policy of each engine. Their
/// number and their chunk counts do not depend on `trials`.
std::vector<std::vector<Candidate>> first_batches(const std::vector<EngineInfo>& engines,
                                                  const Demand& demand, const SolveOptions& options,
                                                  const std::vector<Trial>& trials,
                                                  double budget = kWorkBudget, bool is_part = false);

/// What is tried after `trials`, in round 1, 2, ...: every engine's best policy with the next larger number
/// of chunks, and the best (engine, chunks) pairs so far, with every policy and a fresh seed. Empty when
/// there is nothing to vary.
std::vector<Candidate> next_batch(const std::vector<EngineInfo>& engines, const Demand& demand,
                                  const SolveOptions& options, const std::vector<Trial>& trials, int round);

/// For scheduling anew after `trials`, one of which is improvable: chunk counts, ascending, powers of two or,
/// between two of them, the count that by `expected_us(chunks)` ends much nearer to the bound. The first one
/// is for choosing variants, of at most as many chunks as the best improvable trial; the others have more.
/// `restart_work`: of list scheduling, for each delivery; where it is several times a send's, counts end
/// earlier. Empty where more chunks are no help.
std::vector<int> restart_counts(const Demand& demand, const SolveOptions& options,
                                const std::vector<Trial>& trials, double bound_us, double restart_work,
                                const std::function<double(int)>& expected_us);

/// Variant 0, 1, ... of list scheduling in so many chunks: the engine with the least work, first with the
/// policies and seeds that did best in `trials`, then the best policies with further seeds. Some engine has
/// to be one that is improved.
Candidate restart_candidate(const std::vector<EngineInfo>& engines, const Demand& demand,
                            const SolveOptions& options, const std::vector<Trial>& trials, int chunks,
                            std::size_t variant);

/// No further seeds are tried once so much has been spent: they would cost more than they bring.
inline constexpr double kLargeWork = 4e6;
inline constexpr int kIdleRounds = 3;
/// Where messages cost: a seed there also says how many chunks wait for each other, and few seeds are good.
inline constexpr int kIdleRoundsOfMessages = 20;
inline constexpr std::size_t kEnoughCandidates = 1500;

}  // namespace rondo
