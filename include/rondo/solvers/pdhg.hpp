#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "rondo/model/solver.hpp"
#include "rondo/parallel/communicator.hpp"

namespace rondo {

/// What a run of PDHG goes on from; the numbers are those of the model as it was given.
struct PdhgIterate {
  std::vector<double> x = {};         ///< one a column
  std::vector<double> row_dual = {};  ///< one a row; sign as in Solution
  double primal_weight = 1;
  std::int64_t iterations = 0;
};

struct PdhgOptions {
  double tolerance = 1e-6;                          ///< relative: of both residuals and of the duality gap
  std::optional<PdhgIterate> start = std::nullopt;  ///< counts before a start that solve() is given
  /// Collective, every `checkpoint_every` iterations, with the same iterate on every rank.
  std::function<void(const PdhgIterate&)> checkpoint = nullptr;
  std::int64_t checkpoint_every = 10'000;
};

/// Restarted, diagonally preconditioned primal-dual hybrid gradient for linear programs (PDLP: Applegate et
/// al., NeurIPS 2021), with reflected Halpern steps (Lu and Yang, arXiv 2407.16144), on PETSc matrices and
/// vectors over the ranks of `communicator`. solve() is collective: all ranks pass the same model and get the
/// same solution; a rank assembles the rows it owns. Models without rows' entries, integer columns and errors
/// are treated as by all backends. `Solution::dual_bound` is safe: weak duality with the bounds of the
/// columns, tightened by the rows. Holds `communicator` by reference.
std::shared_ptr<const Solver> make_pdhg_solver(const Communicator& communicator, PdhgOptions options = {});

}  // namespace rondo
