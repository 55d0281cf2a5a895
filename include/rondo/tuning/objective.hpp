#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "rondo/tuning/space.hpp"

/// What a tuner makes small.
namespace rondo::tuning {

/// Some runs of one point.
struct Measured {
  double time_us = 0;        ///< mean over the runs
  std::string failure = {};  ///< why there is no time; empty: there is one

  friend bool operator==(const Measured&, const Measured&) = default;
};

class Objective {
 public:
  virtual ~Objective() = default;
  /// Runs number `first_run` to `first_run + runs` - 1 of a point. A failure is a result. Throws
  /// Error(stopped) once it is interrupted.
  virtual Measured measure(std::size_t point, int first_run, int runs) const = 0;
  /// What it is, for the state file: a tuning goes on with the same alone.
  virtual std::string text() const = 0;
};

/// A program that prints a time.
struct CommandObjective {
  /// For /bin/sh. {NAME} is the point's value of a parameter; {runs}, how often to run (without it the
  /// command is started once a run).
  std::string command;
  double timeout_s = 60;  ///< of one start; then it is killed with all that it started
  double unit_us = 1;     ///< of the last number that it prints
  /// Regular expression (ECMAScript) whose first group is the time; the last match counts. Empty: the last
  /// number of the output.
  std::string pattern = {};
  const std::atomic<bool>* interrupt = nullptr;
};
/// Throws Error(usage) for a brace that names no parameter, and a pattern that is none or has no group. The
/// command does not see the variables by which MPI knows this job, so that it may be an mpirun.
std::unique_ptr<Objective> make_objective(const CommandObjective& command, const Space& space);

/// A model of an executor that moves data in chunks of its buffers through `depth` GPUs in turn. Protocols
/// differ in latency and in what a link carries of data (NCCL's figures), threads move so much each, channels
/// share the link and wait for one another, long buffers fill slowly and short ones cost latency each.
struct ExecutorModel {
  double size_bytes = 1e6;
  double bandwidth_GBps = 25;  ///< of the collective, without an executor
  int depth = 8;               ///< GPUs that data passes, at most
  double noise = 0;            ///< standard deviation of a run, as a share of its time
  std::uint64_t seed = 0;      ///< of the noise

  double time_us(const Space& space, std::size_t point) const;  ///< without noise
};
/// Throws Error(bad_data) where the space has no protocol (LL, LL128, Simple), channels, threads and
/// buffer_bytes.
std::unique_ptr<Objective> make_objective(const ExecutorModel& model, const Space& space);

/// A standard normal variate that depends on its arguments alone; the same on every machine.
double normal_variate(std::uint64_t seed, std::uint64_t point, std::uint64_t run);

}  // namespace rondo::tuning
