#pragma once

#include <optional>
#include <string>

#include "rondo/parallel/communicator.hpp"
#include "rondo/pipeline/options.hpp"
#include "settings.hpp"

/// Options of a run that have no part in its result: `solve` and `resume` share them.
namespace rondo::cli {

struct RunControl {
  std::optional<double> max_hours = std::nullopt;
  double checkpoint_every_s = 60;  ///< infinite: nothing is kept before the result, rounds neither
};

OptionGroup run_control_options();
/// Throws Error(usage).
RunControl read_run_control(const Settings& settings);

/// Why an interval between states that is asked for would change nothing; empty where it counts.
std::string why_interval_ignored(const RunControl& control, const SolveOptions& options, bool is_unicast);

/// Collective. Seconds until the run has to stop: what --max-hours leaves, or, where that is sooner, the end
/// of the batch job that it is in (SLURM_JOB_END_TIME, in seconds since 1970) less a margin for its last
/// state. Nothing where neither is known.
std::optional<double> seconds_left(const RunControl& control, const Communicator& communicator);

}  // namespace rondo::cli
