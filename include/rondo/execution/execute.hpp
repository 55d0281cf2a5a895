#pragma once

#include <cstdint>

#include "rondo/execution/program.hpp"
#include "rondo/parallel/communicator.hpp"

namespace rondo::execution {

struct ExecuteOptions {
  int repeat = 1;  ///< times, each with other data
  int slots = 2;   ///< messages that a connection holds before its sender waits; >= 1
  bool keep_outputs = false;
};

struct ExecuteResult {
  std::int64_t messages = 0;  ///< from GPU to GPU, of all repetitions
  std::int64_t bytes = 0;     ///< in them
  double seconds = 0;         ///< moving them, on the slowest rank, without preparing and comparing
  /// Of the last repetition, where kept: one a GPU, empty for those of other ranks.
  std::vector<Bytes> outputs = {};
};

/// What a GPU's input holds in a repetition.
Bytes input_of(const Program& program, int gpu, int repetition);

/// Collective. Runs the program with real bytes: the GPUs' memory is dealt over the ranks in blocks, every
/// message is a nonblocking MPI message (also from a rank to itself), and the outputs are compared with what
/// the collective makes of the same inputs by its definition: byte for byte, save that floating-point sums
/// and products of n numbers may differ by (n - 1) eps times the sum of their magnitudes, of the product's
/// magnitude. Throws the same Error(bad_data)
/// on every rank: for a deadlock, which is found as soon as nothing can move any more (two global sums over
/// counters that did not change between them, in the manner of Mattern's four-counter method, Distributed
/// Computing 2, 1987), with who waits for whom; for messages that do not fit their receive or that nobody
/// receives; for outputs that differ, with GPU and byte.
ExecuteResult execute(const Program& program, const Communicator& communicator,
                      const ExecuteOptions& options);

}  // namespace rondo::execution
