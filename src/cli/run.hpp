#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "rondo/core/schedule.hpp"
#include "rondo/core/stopwatch.hpp"
#include "rondo/parallel/communicator.hpp"
#include "run_control.hpp"

namespace rondo::cli {

/// What a run makes of an unfinished one of the same problem in its folder.
enum class Unfinished {
  refuse,   ///< earlier work is not discarded without --force
  resume,   ///< from its newest whole state
  replace,  ///< as a finished one
};

struct Run {
  std::string problem;  ///< the text of problem.json
  std::filesystem::path folder;
  Unfinished unfinished = Unfinished::refuse;
  /// The schedule to begin with, where options.from names one and the folder does not have it yet; the
  /// root's.
  std::shared_ptr<const ProvenSchedule> start = nullptr;
  RunControl control = {};
  Stopwatch clock = {};
};

/// Collective. Solves the problem into its folder, or goes on with what is finished there, or answers with
/// the result that the folder holds. Returns what goes to standard output. Throws Error; Error(stopped) when
/// a signal or the end of its time came: what was finished is kept.
std::string solve_run(const Run& run, const Communicator& communicator);

/// Collective: text that the root makes, on every rank.
std::string from_root(const Communicator& communicator, const std::function<std::string()>& make);

}  // namespace rondo::cli
