#pragma once

#include <cstdint>

#include "deal.hpp"
#include "rondo/execution/program.hpp"
#include "rondo/parallel/exchange.hpp"

namespace rondo::execution {

/// Byte `i` of a GPU's input in a repetition: a hash, so that no two places look alike.
std::byte input_byte(int gpu, std::size_t i, int repetition);

/// Collective. What the outputs of this rank's GPUs have to be: one buffer a GPU, empty for those of other
/// ranks and for GPUs whose output the collective leaves open. Made by MPI's own collective over the ranks
/// from the inputs of all GPUs; of a custom demand by its deliveries, the rest of the output being `filler`.
std::vector<Bytes> reference_outputs(const Program& program, const Deal& deal, const Exchange& exchange,
                                     int repetition, std::byte filler);

}  // namespace rondo::execution
