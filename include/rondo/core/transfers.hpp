#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rondo/core/chunk_gpu_table.hpp"
#include "rondo/core/collective.hpp"
#include "rondo/core/ids.hpp"
#include "rondo/core/index.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/core/topology.hpp"

/// What sends do together. A transfer (FORMATS.md 3, rule 1) begins with a send that leaves a GPU; others
/// continue it through switches to one GPU, or to several where switches copy. All functions are pure, take
/// sends in any order and name sends and deliveries by their positions in the lists given, -1 for none.
///
/// A GPU holds one partial sum a chunk, which arrivals change one after another: additions, and copies that
/// contain what was there. A copy that brings nothing new counts as no arrival. What a send carries is
/// therefore named by the last arrival that it includes; the others hang on that one in a chain.
namespace rondo {

/// What a transfer does for one of the GPUs that it reaches.
struct Delivery {
  ChunkId chunk;
  GpuId src;
  GpuId dst;
  double start_us = 0;    ///< the transfer leaves src
  double arrival_us = 0;  ///< the chunk is whole at dst
  int first_send = -1;    ///< leaves src; the same for all deliveries of a transfer
  int last_send = -1;     ///< enters dst
  /// The delivery that brings the chunk to src; -1 where src is the origin or nothing brings it in time. Of a
  /// sum the last arrival at src that it includes; -1 where it is what src holds at first.
  int cause = -1;
  SendOp op = SendOp::copy;  ///< what dst does with it
  /// Of a sum, where op is reduce: the arrival at dst that it adds to; -1: to what dst holds at first.
  int before = -1;
};

struct Transfers {
  /// Per send the one that it continues, which brings the chunk to the switch; -1 where it leaves a GPU.
  std::vector<int> continued;
  /// Per send that a switch adds to the one that `continued` names: the send that carries the sum on, of
  /// several the first, -1 for others. Empty where no switch adds.
  std::vector<int> added_into;
  std::vector<Delivery> deliveries;  ///< by start, then by first and by last send
};

/// The transfers of a schedule that the replay accepts. At a cut-through switch a send continues one of its
/// own number that enters at its instant and rate, at a store-and-forward switch one that has arrived. Of
/// several it takes one that nothing continues yet, else the latest, else the one that is continued least. In
/// other schedules a send that continues nothing (-1, though it leaves a switch) is part of no transfer. What
/// a switch adds up are deliveries from every GPU that gives to the sum.
Transfers transfers_of(const Topology& topology, const Demand& demand, std::span<const Send> sends);

/// Sets the cause of every delivery: of those of its chunk to its source the first to arrive; of sums `cause`
/// and `before` as Delivery says.
void find_causes(const Demand& demand, std::vector<Delivery>& deliveries);

/// Per chunk and GPU the delivery that arrives first, of several at one time the first in the list; of sums
/// the first that leaves the whole sum there. Needs the causes.
ChunkGpuTable<int> first_arrivals(const Demand& demand, std::span<const Delivery> deliveries);

/// Per delivery of how many sources the sum is that it brings, and that its destination then holds, from the
/// causes; 1 for what is only copied.
std::vector<int> sources_carried(const Demand& demand, std::span<const Delivery> deliveries);
std::vector<int> sources_held(const Demand& demand, std::span<const Delivery> deliveries);

/// Marks what the demand needs: the first arrival at every destination, and all that it rests on.
std::vector<char> needed_deliveries(const Demand& demand, std::span<const Delivery> deliveries);

/// Removes what is not marked. `T` has a cause, and perhaps a `before`, which are marked where it is.
template <class T>
void keep_marked(std::vector<T>& all, const std::vector<char>& marked) {
  std::vector<int> position(all.size(), -1);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (marked[i] != 0) position[i] = static_cast<int>(kept++);
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (marked[i] == 0) continue;
    T& place = all[index(position[i])];
    place = std::move(all[i]);
    if (place.cause >= 0) place.cause = position[index(place.cause)];
    if constexpr (requires { place.before; }) {
      if (place.before >= 0) place.before = position[index(place.before)];
    }
  }
  all.erase(all.begin() + static_cast<std::ptrdiff_t>(kept), all.end());
}

/// Gives a number to every transfer that has none and goes over several links that cut-through switches join.
/// Sums need that, and what spreads them: which of those that meet in a switch belong together is not free.
void number_transfers(const Topology& topology, const Demand& demand, std::vector<Send>& sends);
/// The same, and the others too, each of one link: what takes the place of one chunk may be many.
void number_all_transfers(const Topology& topology, const Demand& demand, std::vector<Send>& sends);
/// Greater than all that the sends have.
std::int32_t next_transfer_number(std::span<const Send> sends);

/// The sends, in their order, that the needed deliveries consist of.
std::vector<Send> pruned(const Topology& topology, const Demand& demand, std::span<const Send> sends);

}  // namespace rondo
