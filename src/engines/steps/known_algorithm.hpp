#pragma once

#include <functional>
#include <string>
#include <vector>

#include "rondo/core/hops.hpp"
#include "rondo/core/ids.hpp"
#include "rondo/engines/engine_row.hpp"

/// Algorithms as textbooks, MPI and NCCL have them, made into schedules: what they cost here is what a user's
/// own library can be held against. GPUs that take part are members, named by their positions 0 .. n-1.
namespace rondo {

/// Messages of earlier steps go first where they meet on a link; otherwise each goes as soon as it can.
struct StepMessage {
  int from = 0;
  int to = 0;
  int step = 0;
};
using StepMessages = std::vector<StepMessage>;

struct KnownAlgorithm {
  std::vector<double> shares = {1};  ///< of the data that each channel takes
  /// Along which data of `root` reach all members, from the root outwards: who sends is the root or has
  /// received before in the list. Absent: it does not do that.
  std::function<StepMessages(int channel, int root)> spread = nullptr;
  /// Along which sums come to `root`, also from the root outwards: who receives is the root or has sent
  /// before in the list. Absent: as `spread`, turned round.
  std::function<StepMessages(int channel, int root)> gather = nullptr;
  /// Where the `turn`-th chunk of a channel is summed up in AllReduce. Absent: at each member in turn.
  std::function<int(int channel, int turn)> root_of_sum = nullptr;
  /// The path of what one member has for another. Absent: it does not do that.
  std::function<StepMessages(int from, int to)> route = nullptr;
  /// The hop of the table from member to member; absent: of the fastest ones each in turn.
  std::function<int(int channel, int from, int to)> hop = nullptr;
};

/// What an algorithm is made for.
struct Members {
  const Topology& topology;
  const HopTable& hops;
  std::vector<GpuId> gpus;
  bool combine;       ///< what they have (AllReduce)
  bool has_one_root;  ///< all data are of one member (Broadcast)

  int count() const { return static_cast<int>(gpus.size()); }
};

/// Throws Error(unavailable) where the members or the fabric are none that it knows.
using MakeAlgorithm = std::function<KnownAlgorithm(const Members&)>;

/// The engine's row. `help` is what it does; `pieces`: into how many pieces AllReduce cuts its buffer.
EngineInfo known_engine(
    std::string name, std::string help, MakeAlgorithm make,
    std::function<int(int num_members)> pieces = [](int n) { return n; });

/// The same row; `auto` tries it on an AllReduce, before all others, where links and latencies might let it
/// end about at the lower bound. `in_allgather`: and on an AllGather of few GPUs, among the others.
EngineInfo quick_engine(EngineInfo known, bool in_allgather = false);

/// A binomial tree over `count` members, in ceil(log2 count) steps: messages go ever nearer.
StepMessages binomial(int root, int count);

}  // namespace rondo
