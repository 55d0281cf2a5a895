#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "rondo/core/schedule.hpp"
#include "rondo/msccl/executors.hpp"
#include "rondo/msccl/program.hpp"

/// Schedules become programs of the MSCCL executors.
namespace rondo {

struct LoweringOptions {
  const msccl::Executor* executor = nullptr;  ///< whose spelling and caps; required
  msccl::Protocol protocol = msccl::Protocol::simple;
  bool in_place = false;  ///< AllGather, Broadcast, sums: a GPU's own part is in the output already
  int instances = 1;      ///< every chunk is split into so many parts, each on channels of its own
  std::optional<int> max_peers = {};  ///< GPUs that a GPU sends to, and that it receives from
  std::optional<int> max_steps = {};  ///< of a threadblock, where less than the executor's cap
  std::string redop = "sum";  ///< what sums are: sum, prod, max, min; written where the demand combines
  std::string name = {};      ///< empty: made from the topology, the collective and the size
  std::int64_t min_bytes = 0;
  std::int64_t max_bytes = std::int64_t{1} << 40;
};

/// The program that does what the schedule does, in its order:
/// - What a chunk passes through switches is one transfer from GPU to GPU; what serves no destination is left
/// out.
/// - Transfers of a connection become one step where their chunks are contiguous at both ends and
/// nothing that the schedule does later has to wait for the last of them.
/// - A connection belongs to one threadblock at each end; where at least half of what a GPU receives on one
/// goes straight on over another, both belong to one threadblock and are fused (rcs). A connection with more
/// steps than a threadblock takes is dealt over several channels.
/// - What is added to a GPU's partial sum is received with rrc, and with rrcs or rrs where the sum goes
/// straight on, rrs where nobody needs it any more. The first addition reads the GPU's input, which nothing
/// writes; the sum is kept in the output where it ends up there, else in scratch.
/// - Relayed data and other partial sums wait in scratch, in chunks that are free again once the last send
/// has read them.
/// - A step waits for exactly the steps that no other wait implies (the transitive reduction).
///
/// The steps follow the schedule's order of departures and arrivals; where that could need connections that
/// hold more than two sends, one transfer after another. So the program ends. Partial sums are sent as the
/// schedule has them: with all arrivals that they include and none other. Layouts: contribution j of GPU
/// s is at j's place of FORMATS.md 2's collective (AllGather: output s; AllToAll: input d, output s); for
/// custom demands inputs hold what starts at the GPU, outputs what ends there, both in the order of the
/// demand's contributions.
///
/// `proven` has to be valid (replay). Throws Error(usage) for options that do not fit the collective,
/// Error(unavailable) beyond a cap, naming the cap, the figure and what to change, for switches that add and
/// for what GPUs hold of sums at first.
msccl::Program lower(const ProvenSchedule& proven, const LoweringOptions& options);

}  // namespace rondo
