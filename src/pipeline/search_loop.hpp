#pragma once

#include <fmt/format.h>

#include <atomic>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "portfolio.hpp"
#include "rondo/core/stopwatch.hpp"
#include "rondo/local_search/improvement.hpp"
#include "search.hpp"
#include "search_state.hpp"

namespace rondo {

/// What makes one trial better than another: among those that meet the gap the fewest chunks count first.
inline constexpr int kGapNotMet = std::numeric_limits<int>::max();
inline constexpr std::pair<int, double> kNoMerit{kGapNotMet, kInfinity};

inline constexpr const char* kSearchCheckpoint = "search";

/// What one rank keeps of the best candidate it has worked on.
struct Incumbent {
  std::size_t trial = kNoTrial;
  std::pair<int, double> merit = kNoMerit;
  std::shared_ptr<const EngineResult> result = nullptr;
};

/// Candidates are dealt over the ranks; only finish times travel, and at the end the winner.
class Search {
 public:
  Search(const Instance& instance, const SolveOptions& options, const Bounds& bounds, const Toolbox& tools,
         const Communicator& communicator, const Progress& progress, const std::atomic<bool>* interrupt,
         Checkpoints& checkpoints);

  void run();
  /// Collective: the best schedule, on every rank.
  SynthesisResult winner();

 private:
  /// What the ranks know together, and what this one has of it.
  struct SearchSnapshot {
    SearchState state = {};
    int best_rank = 0;  ///< who has the best trial's result
    Incumbent mine = {};
  };
  void resume_from_checkpoint();
  Bytes pack(const SearchSnapshot& snapshot) const;
  void run_batch(const std::vector<Candidate>& batch);
  void prepare_on_all_ranks();
  Trial try_candidate(const Candidate& candidate, std::size_t trial);
  EngineResult run_engine(const Candidate& candidate, std::optional<double> until_s);
  EngineResult run_engine(const Candidate& candidate, EngineOptions options);
  Schedule rerun(const Candidate& candidate);
  std::optional<double> portfolio_ends_s(const Candidate& candidate) const;
  bool may_improve() const;
  double least_us(int chunks) const;
  std::vector<ImprovementTask::Start> starts_of_improvement(const Schedule& best);
  void offer_restart_schedules(ImprovementTask& task);
  int improve_winner(EngineResult& found);
  std::pair<int, double> merit(const Trial& trial) const {
    const bool met = options_.gap && trial.finish_us <= engine_options_.stop_at_us;
    return {met ? trial.candidate.chunks : kGapNotMet, trial.finish_us};
  }
  std::pair<int, double> best_merit() const {
    const SearchState& state = now_.state;
    return state.best < state.trials.size() ? merit(state.trials[state.best]) : kNoMerit;
  }
  bool interrupted() const;
  bool stop(double finish_us);
  bool work_is_done(std::size_t num_first_batches);
  void show_progress() const;
  double best_finish() const { return now_.state.best_finish_us(); }
  std::string label(const Candidate& c) const {
    return engines_[c.engine].name + (c.policy.empty() ? "" : "/" + c.policy) +
           (engines_[c.engine].policies.empty() ? "" : fmt::format("/{}", c.seed));
  }

  const Instance& instance_;
  const SolveOptions& options_;
  const LowerBound& bound_;
  const Communicator& communicator_;
  const Progress& progress_;
  const std::atomic<bool>* interrupt_;
  Checkpoints& checkpoints_;
  const Toolbox& tools_;
  const Stopwatch clock_;
  std::vector<EngineInfo> engines_;
  std::vector<PreparedEngine> prepared_;  ///< made when first needed
  EngineOptions engine_options_;
  SearchSnapshot now_;
  std::size_t trials_of_checkpoint_ = 0;
  std::optional<double> whole_chunk_bound_us_;  ///< in the chunks asked for
  std::vector<std::string> limits_hit_;
  std::optional<Error> first_error_;
};

std::size_t most_sends_on_a_link(const Schedule& schedule, const Topology& topology);

}  // namespace rondo
