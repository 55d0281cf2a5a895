#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rondo/core/collective.hpp"
#include "rondo/core/ids.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/core/topology.hpp"

/// Algorithms of other producers: who sends what to whom after what, without times.
namespace rondo {

/// A chunk from a GPU to another. It carries what the GPU holds when the step begins.
struct AlgorithmSend {
  ChunkId chunk;
  GpuId src;
  GpuId dst;
  int step = 0;
  int message = -1;  ///< sends of one number, of one pair of GPUs, may travel together; -1: alone
  /// Together with others like it of the chunk, step and source, as far as switches copy.
  bool switches_copy = false;
  /// What `dst` does with a part of a sum; absent: it copies what contains what it has and adds what has
  /// nothing in common with that.
  std::optional<SendOp> op = std::nullopt;
};

struct Algorithm {
  std::string name;
  Demand demand;
  std::vector<AlgorithmSend> sends;  ///< by step
};

/// Where the file has the `i`-th send, for messages.
using SendPlace = std::function<std::string(std::size_t i)>;

/// Follows the steps and settles every `op`. Throws Error(bad_data), naming the send, for one of what is not
/// there, for sums that would count a GPU twice or lose one, and for data that never come;
/// Error(unavailable) for sums too large to follow.
void settle(Algorithm& algorithm, const SendPlace& place);

/// The schedule of a settled algorithm: its sends in its order on every link and at every GPU, each as early
/// as that allows, over the fastest hops between the GPUs, of equal ones the least loaded. With `join`
/// messages go together where links have message costs. The replay may still refuse it, where sums meet
/// otherwise than step by step. Throws Error(bad_data) for another number of GPUs, and for GPUs that no link
/// or switch joins.
Schedule timed(const Algorithm& algorithm, const Topology& topology, bool join);

/// A schedule in steps: in each, GPUs send what they hold when it begins. `topology` and `demand` are those
/// of the schedule, which the replay accepts; sends have an `op`.
std::vector<AlgorithmSend> in_steps(const ProvenSchedule& proven);

/// What an algorithm moves, as its file says it.
struct Datum {
  std::vector<GpuId> sources = {};       ///< ascending
  std::vector<GpuId> destinations = {};  ///< ascending; of data that is copied without its sources
  bool reduce = false;                   ///< the sum of what the sources have
};

struct RecognisedData {
  Demand demand;
  std::vector<ChunkId> chunks;  ///< of each datum; invalid for those that nobody wants
};

/// The named collective that moves just these data, equal in size (`named` where that is one of several that
/// do), or a custom demand. `size_bytes` as FORMATS.md 2 has it; of a custom demand the sum. Throws
/// Error(bad_data) where nothing is to move.
RecognisedData recognise(std::span<const Datum> data, std::size_t num_gpus, double size_bytes,
                         std::optional<Collective> named);

}  // namespace rondo
