#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rondo/mscclpp/plan.hpp"

/// A plan at one size: pipelines written out, threadblock groups dealt, every operand a place in memory. What
/// the check and the execution of plans begin with.
namespace rondo::mscclpp {

/// Bytes of a GPU's memory.
struct Span {
  int gpu = -1;
  std::size_t offset = 0;
  std::size_t bytes = 0;
  bool packets = false;  ///< each of which its reader waits for

  friend bool operator==(const Span&, const Span&) = default;
};

/// One thing that a threadblock does.
struct Action {
  enum class Kind : std::uint8_t {
    sync,     ///< its threads wait for one another
    barrier,  ///< `num_tbs` threadblocks of the GPU do, at barrier `id`
    signal,   ///< on `channel`
    wait,     ///< on `channel`
    release,  ///< of semaphore `id`
    acquire,
    flush,  ///< of `channel`
    move,   ///< what `sources` hold, added up, comes to all `targets`
  };
  static constexpr int kAllThreads = -1;

  Kind kind = Kind::sync;
  int thread = kAllThreads;  ///< that does it; only a sync or a barrier keeps others from going ahead
  int channel = -1;          ///< in Unfolded::channels; of a move: the port that does it, -1: the threads do
  int id = -1;
  int num_tbs = 0;
  bool relaxed = false;  ///< signal, wait: data need not be visible
  std::vector<Span> sources = {};
  std::vector<Span> targets = {};
  int op = -1;  ///< in its threadblock
};

/// One end of a channel between two GPUs.
struct ChannelEnd {
  int gpu = -1;
  int peer = -1;
  ChannelType type = ChannelType::memory;
  int other_end = -1;  ///< -1: the peer has none
};

/// Where buffers begin, and how long they are, in bytes.
struct Memory {
  std::size_t input = 0, input_bytes = 0;
  std::size_t output = 0, output_bytes = 0;
  std::size_t scratch = 0;
  std::size_t packets = 0;  ///< scratch used for packets, counted without their flags
  std::size_t bytes = 0;    ///< in all
};

struct Unfolded {
  Collective collective = Collective::custom;
  std::size_t chunk_bytes = 0;
  std::vector<Memory> memory = {};  ///< per GPU
  std::vector<ChannelEnd> channels = {};
  std::vector<std::vector<int>> semaphores = {};           ///< per GPU: first values
  std::vector<std::vector<std::vector<Action>>> tbs = {};  ///< per GPU and threadblock
};

/// Throws Error(bad_data) with gpu, tb and op for references to what is not there, operands outside their
/// buffers or of different sizes, operations without what they need, buffers that do not fit the collective;
/// Error(unavailable) beyond 50 million actions.
Unfolded unfold(const Plan& plan, std::size_t chunk_bytes);

/// Equal pieces that a chunk has to have for all threadblock groups to get whole ones.
std::size_t num_slices(const Plan& plan);

/// The least chunk at which every part of the plan shows: groups get whole units, pipelines run twice a
/// chunk.
std::size_t telling_chunk_bytes(const Plan& plan);

}  // namespace rondo::mscclpp
