#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "rondo/core/epoch_grid.hpp"
#include "rondo/engines/rounds.hpp"

namespace rondo {

struct SolveOptions {
  std::string engine = "auto";
  std::string policy = {};         ///< "" = the engine's default (auto: all)
  int chunks = 0;                  ///< chunks a contribution; 0 = auto
  double min_chunk_bytes = 1024;   ///< auto never splits below it
  std::optional<double> gap = {};  ///< stop once finish / bound - 1 <= gap
  std::optional<double> time_limit_s = {};
  /// Work of large-neighbourhood search on the best schedule, in sends; 0: none. With `gap` ten times as
  /// much.
  double improve_work = 2.5e6;
  std::uint64_t seed = 0;
  bool symmetry = true;                 ///< whether the symmetry of topology and demand is made use of
  EpochOptions epochs = {};             ///< engines lp and milp
  std::string lp_solver = "auto";       ///< one of lp_solvers()
  std::optional<double> flow_gap = {};  ///< that columns are proven to; absent: see prepare_toolbox.cpp
  double lp_tolerance = 1e-6;           ///< of pdhg: relative, of both residuals and of the duality gap
  std::int64_t max_nodes = -1;          ///< engines milp and rounds; -1 = their default
  std::string decompose = "none";       ///< engine rounds: one of decompositions()
  int parts = 0;                        ///< 0 = the decomposition's own choice
  RoundOptions rounds = {};

  /// The gap that ends a search. Without --gap a finish time this near to the bound counts as optimal.
  double gap_to_meet() const { return gap.value_or(1e-6); }
};

}  // namespace rondo
