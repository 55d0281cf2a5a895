#include "rondo/engines/engine_row.hpp"

namespace rondo {

EngineInfo rounds_engine() {
  return {.name = "rounds",
          .help =
              "repairs what auto finds, round by round: MILPs in windows of it, over all ranks, trees grown "
              "anew, chunks split; with --start list or none A* rounds",
          .traits = {.on_epoch_grid = true,
                     .counts_epochs = false,
                     .flows_over_time = false,
                     .branches = true,
                     .relaxes_on_a_rank = false,
                     .in_parts = true},
          .works_in_rounds = true};
}

}  // namespace rondo
