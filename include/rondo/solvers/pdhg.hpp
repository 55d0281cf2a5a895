#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "rondo/model/solver.hpp"
#include "rondo/parallel/communicator.hpp"

namespace rondo {

/// The state from which a run of PDHG resumes; the numbers are those of the model as given.
struct PdhgIterate {
  std::vector<double> x = {};         ///< one a column
  std::vector<double> row_dual = {};  ///< one a row; sign as in Solution
  double primal_weight = 1;
  std::int64_t iterations = 0;
};

/// Where runs keep their iterates. `model` tells models from one another, on any number of ranks alike. All
/// of it is collective.
struct PdhgStore {
  std::function<std::optional<PdhgIterate>(std::uint64_t model)> newest = nullptr;
  /// Called now and then, with `last` when the run ends early; `iterate` is collective as well.
  std::function<void(std::uint64_t model, const std::function<PdhgIterate()>& iterate, bool last)> offer =
      nullptr;
};

/// How far a run is, relative as `PdhgOptions::tolerance`.
struct PdhgProgress {
  std::int64_t iterations = 0;
  double gap = 0;
  double primal_residual = 0;
  double dual_residual = 0;
};

struct PdhgOptions {
  double tolerance = 1e-6;                          ///< relative: of both residuals and of the duality gap
  std::optional<PdhgIterate> start = std::nullopt;  ///< counts before a start that solve() is given
  PdhgStore store = {};                             ///< its newest iterate counts before both
  std::function<void(const PdhgProgress&)> progress = nullptr;  ///< now and then, on every rank
  const std::atomic<bool>* interrupt = nullptr;                 ///< besides that of the limits
};

/// Restarted, diagonally preconditioned primal-dual hybrid gradient for linear programs (PDLP: Applegate et
/// al., NeurIPS 2021), with reflected Halpern steps (Lu and Yang, arXiv 2407.16144), on PETSc matrices and
/// vectors over the ranks of `communicator`. solve() is collective: all ranks pass the same model, each at
/// least the entries of its share() of the columns, and get the same solution. Models without entries,
/// integer columns and errors are treated as by all backends. `Solution::dual_bound` is safe: weak duality
/// with the bounds of the columns and the model's implied ones; where neither are finite, with those that the
/// rows imply. Holds `communicator` by reference.
std::shared_ptr<const Solver> make_pdhg_solver(const Communicator& communicator, PdhgOptions options = {});

}  // namespace rondo
