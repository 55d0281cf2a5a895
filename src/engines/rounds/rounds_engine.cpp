#include "rondo/engines/engine_row.hpp"

namespace rondo {

EngineInfo rounds_engine() {
  return {.name = "rounds",
          .help =
              "A* rounds: look-ahead MILPs of a few epochs after one another, over all ranks, from the list "
              "scheduler's plan",
          .traits = {.on_epoch_grid = true,
                     .counts_epochs = false,
                     .flows_over_time = false,
                     .branches = true,
                     .relaxes_on_a_rank = false,
                     .in_parts = true},
          .works_in_rounds = true};
}

}  // namespace rondo
