#pragma once

#include <cstdint>
#include <span>

#include "deal.hpp"
#include "rondo/execution/program.hpp"

namespace rondo::execution {

/// Bytes [begin, begin + bytes.size()) of a GPU's input in a repetition: hashes, so that no two places look
/// alike.
void fill_input(int gpu, std::size_t begin, std::span<std::byte> bytes, int repetition);

/// What the outputs of this rank's GPUs have to be by the program's deliveries: one buffer a GPU, empty for
/// those of other ranks and for GPUs whose output the collective leaves open. What no delivery covers is
/// `filler`.
std::vector<Bytes> expected_outputs(const Program& program, const Deal& deal, int repetition,
                                    std::byte filler);

}  // namespace rondo::execution
