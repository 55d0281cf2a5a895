#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rondo/model/solver.hpp"
#include "rondo/parallel/messages.hpp"
#include "window_model.hpp"

namespace rondo {

/// What the model of a window has found; sent between ranks.
struct WindowAnswer {
  /// A member's place in the order of placing, and its hop and cause.
  struct Member {
    int transfer = 0;
    int hop = 0;
    int cause = -1;
    double start_us = 0;
  };
  std::string outcome = {};
  std::int64_t columns = 0, rows = 0, nodes = 0, iterations = 0;
  double lambda_us = 0;
  std::int64_t detours = 0;          ///< members that take another way
  std::vector<Member> members = {};  ///< empty where nothing is gained
};

auto members_of(SameAs<WindowAnswer> auto& a) {
  return std::tie(a.outcome, a.columns, a.rows, a.nodes, a.iterations, a.lambda_us, a.detours, a.members);
}

/// Limits on nodes and simplex iterations make the answer the same on every machine.
WindowAnswer solve_window(const PlanView& view, const Window& window, const Solver& milp,
                          const SolveLimits& user_limits);

}  // namespace rondo
