#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "expected_seconds.hpp"
#include "explore.hpp"

namespace rondo {

/// What makes one trial better than another: among those that meet the gap the fewest chunks count first.
using Merit = std::pair<int, double>;
inline constexpr int kGapNotMet = std::numeric_limits<int>::max();
inline constexpr Merit kNoMerit{kGapNotMet, kInfinity};
/// What one rank keeps of the best candidate it has worked on.
struct BestOfRank {
  std::size_t trial = kNoTrial;
  Merit merit = kNoMerit;
  std::shared_ptr<EngineResult> result = nullptr;
};

/// What the ranks know together, and what this one has of it.
struct SearchSnapshot {
  SearchState state = {};
  int best_rank = 0;  ///< the rank that has the best trial's result
  BestOfRank mine = {};
};

/// explore(), step by step.
class Explorer {
 public:
  Explorer(const Problem& problem, EngineRunner& runner, StopRule& rule, const RunContext& context,
           bool deals, const std::optional<ToBeat>& to_beat)
      : problem_(problem),
        runner_(runner),
        rule_(rule),
        context_(context),
        deals_(deals),
        to_beat_(to_beat),
        budget_(problem.list_share * kWorkBudget *
                (replanting_follows(problem) ? kShareBeforeReplanting : 1)) {}

  Exploration run();

 private:
  void resume_from_checkpoint();
  Bytes pack(const SearchSnapshot& snapshot) const;
  void run_batch(const std::vector<Candidate>& batch);
  Trial try_candidate(const Candidate& candidate, std::size_t trial);
  std::optional<double> ends_s(const Candidate& candidate) const;
  double expected_sends(const Candidate& candidate) const;
  bool may_be_split(const Candidate& candidate) const;
  bool ran_out_of_time(const Error& error);
  void fall_back();
  bool work_is_done(std::size_t num_first_batches);
  bool improvement_follows() const;
  int rounds_in_batch() const;
  std::vector<Candidate> further_batch(std::size_t number) const;
  void try_in_more_chunks(const std::vector<std::vector<Candidate>>& first_ones);
  void pipeline_in_more_chunks();
  bool try_pipelined(Candidate candidate);
  bool is_vain_rerouting(const std::vector<Candidate>& batch) const;
  void show_progress() const;
  void search();
  bool is_dealt(int chunks) const { return deals_ && may_be_dealt(problem_, chunks); }
  EngineResult take_best(const Trial& winner, std::optional<DealtSchedule>& is_dealt_as);
  Exploration best_on_every_rank();

  Merit merit(const Trial& trial) const {
    const bool met = problem_.options.has_gap_to_meet() && trial.finish_us <= rule_.enough_us();
    return {met ? trial.candidate.chunks : kGapNotMet, trial.finish_us};
  }
  Merit best_merit() const {
    const SearchState& state = now_.state;
    return state.best < state.trials.size() ? merit(state.trials[state.best]) : kNoMerit;
  }
  double best_finish_us() const { return now_.state.best_finish_us(); }

  const Problem& problem_;
  EngineRunner& runner_;
  StopRule& rule_;
  const RunContext& context_;
  const bool deals_;
  const std::optional<ToBeat> to_beat_;
  const double budget_;  ///< work of all candidates where no limit is asked for
  SearchSnapshot now_;
  ExpectedSeconds expected_seconds_;
  std::size_t trials_of_checkpoint_ = 0;
  std::optional<Error> first_error_;
  std::optional<Error> first_fault_;  ///< of Rondo, by an engine of `auto`: the others go on
  bool falls_back_ = false;           ///< no engine was in time
  bool tried_more_chunks_ = false;
  double share_of_portfolio_ = kShareOfPortfolio;  ///< of a time limit, where an improvement follows
};

}  // namespace rondo
