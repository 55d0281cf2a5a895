#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "rondo/core/stopwatch.hpp"
#include "rondo/parallel/communicator.hpp"

namespace rondo::cli {

struct Run {
  std::string problem;  ///< the text of problem.json
  std::filesystem::path folder;
  bool force = false;  ///< solve even if the folder has a result or finished rounds
  Stopwatch clock = {};
};

/// Collective. Solves the problem into its folder, or goes on after the rounds that are finished there, or
/// answers with the result that the folder holds. Returns what goes to standard output. Throws Error.
std::string solve_run(const Run& run, const Communicator& communicator);

/// Collective: text that the root makes, on every rank.
std::string from_root(const Communicator& communicator, const std::function<std::string()>& make);

}  // namespace rondo::cli
