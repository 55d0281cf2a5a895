#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "rondo/core/schedule.hpp"
#include "rondo/msccl/executors.hpp"
#include "rondo/msccl/program.hpp"
#include "rondo/mscclpp/plan.hpp"

/// Schedules become programs of the MSCCL executors, and plans of MSCCL++.
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
  bool reuse_scratch = true;  ///< false: what waits in scratch has a place of its own throughout
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

/// How a schedule becomes an execution plan of MSCCL++.
struct PlanOptions {
  bool in_place = false;
  int instances = 1;
  std::optional<int> max_peers = {};
  std::string name = {};
  std::uint64_t min_bytes = 0;  ///< of a message
  std::uint64_t max_bytes = mscclpp::kNoLimit;
  /// GPUs that reach one another's memory, in the order of their ids; 0: those of one chassis, all where the
  /// topology has none.
  int gpus_per_node = 0;
  bool switch_copies = true;  ///< what a switch of a node copies is stored at all its receivers at once
};

/// The plan that does what the schedule does: the steps of lower(), as one-sided copies.
/// - A send becomes a put to the place where its receiver wants the data, and a signal; a receive waits. What
/// is to be added lands in scratch of its own first.
/// - Nobody touches the memory of a GPU before it has begun: each receiver says so with a relaxed signal.
/// - GPUs of one node use memory channels, others port channels. A port flushes with its last put, and where
/// the source is written again.
/// - What a switch of a node copies is one store at a group of GPUs (gstore), where it comes to one place of
/// their outputs; else, and without `switch_copies`, a put each. What one switch adds up for all GPUs is
/// glres, each GPU a share of it; other sums of switches are refused.
/// - Threadblocks of a GPU wait for one another with a semaphore a pair.
/// - nop stands where the threads of a block have to wait for one another, nowhere else.
/// The least and the greatest message are those that chunks of 16 bytes and offsets of 32 bits allow, where
/// the options do not say less. The plan has passed mscclpp::check.
/// Throws Error(unavailable) beyond a cap, naming it, and as lower() does.
mscclpp::Plan lower_to_plan(const ProvenSchedule& proven, const PlanOptions& options);

}  // namespace rondo
