#pragma once

#include "rondo/execution/program.hpp"

namespace rondo::execution {

/// Sets memory, input and output of every GPU to buffers of these sizes, scratch behind them. In place, one
/// of input and output lies inside the other by NCCL's conventions: of a buffer with a part a GPU, the other
/// is the GPU's own part; else both are the same. Throws Error(unavailable) beyond 2 GB of user data (MPI
/// counts bytes in ints) or 6 GB of memory in all.
void lay_out(Program& program, const std::vector<std::size_t>& input, const std::vector<std::size_t>& output,
             const std::vector<std::size_t>& scratch);

/// Throws Error(unavailable) where the GPUs' buffers, or all their memory, are more than these caps.
void check_room(std::size_t gpus, double user, double all);

/// What a named collective asks of the outputs, in parts of so many bytes; nothing for a custom one.
void add_deliveries(Program& program, std::size_t part_bytes);

/// `bytes` in whole multiples of `unit`, rounded up.
std::size_t rounded_up(double bytes, std::size_t unit);

/// Where scratch begins.
std::size_t scratch_begin(const Program& program, int gpu);

}  // namespace rondo::execution
