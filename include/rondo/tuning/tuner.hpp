#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "rondo/parallel/communicator.hpp"
#include "rondo/tuning/objective.hpp"
#include "rondo/tuning/space.hpp"

/// Finds the point of a space at which an objective is least, in few runs: points by a tree-structured Parzen
/// estimator (Bergstra et al., NeurIPS 2011), runs by Hyperband (Li et al., JMLR 2018), as TuCCL combines
/// them.
namespace rondo::tuning {

struct TuneOptions {
  std::uint64_t seed = 0;
  bool estimator = true;  ///< false: points are drawn uniformly
  bool hyperband = true;  ///< false: every point gets all runs
  int most_runs = 0;      ///< of all points together; 0: a tenth of the points of the grid
  int runs = 4;           ///< of a point that stays to the end
  int eta = 3;            ///< of a bracket's points one in eta stays, with eta times the runs
  int batch = 8;          ///< points that are chosen at once without Hyperband
  int patience = 60;      ///< points over which a stop looks back

  /// Throws Error(usage) for what is out of range.
  void check() const;
  std::string text() const;
};

/// What a tuner knows of a point.
struct Trial {
  std::size_t point = 0;
  int runs = 0;
  double time_us = 0;  ///< mean over them
  std::string failure = {};

  bool has_failed() const { return !failure.empty(); }
};

/// One measurement, as the state file keeps it.
struct Record {
  std::size_t point = 0;
  int first_run = 0;
  int runs = 0;
  Measured measured = {};
};

struct Tuning {
  std::vector<Trial> trials = {};  ///< in the order in which they were first chosen
  std::optional<Trial> best = std::nullopt;
  int runs = 0;  ///< of all trials
  std::string why_ended = {};
};

/// Where a tuning leaves what it has measured, and what it was before.
struct TuneContext {
  const Communicator& communicator;
  std::vector<Record> known = {};  ///< not measured again
  /// On the root, after each batch: all measurements.
  std::function<void(const std::vector<Record>&)> save = [](const std::vector<Record>&) {};
  std::function<void(const std::string&)> progress = [](const std::string&) {};  ///< on the root
};

/// Collective. Deals each batch over the ranks. With an objective that gives the same times, the result is
/// the same on any number of ranks, after any stops. Ends after most_runs, when no point is left, or when
/// over `patience` points the best got less than 1 % faster and the distribution of good points moved by
/// less than 0.1 (Kullback and Leibler's divergence; TuCCL, equation 5). With estimator and Hyperband a fifth
/// of most_runs is left for the best eight points of all runs: the better half of them stays, three times,
/// with twice as many more. Throws Error(stopped) once a measurement was interrupted, Error(unavailable)
/// where none of the first points gives a time; what was measured is saved before.
Tuning tune(const Space& space, const Objective& objective, const TuneOptions& options, TuneContext context);

/// The content of a state file; `about` says of what it is.
Json to_json(const Space& space, const std::vector<Record>& records, const std::string& about);
/// Throws Error(bad_data) where it is of something else, or of another space.
std::vector<Record> records_from_json(const Json& json, const Space& space, const std::string& about);

}  // namespace rondo::tuning
