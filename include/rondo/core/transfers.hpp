#pragma once

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
  /// The delivery that brings the chunk to src; -1 where src is the origin or nothing brings it in time.
  int cause = -1;
};

struct Transfers {
  /// Per send the one that it continues, which brings the chunk to the switch; -1 where it leaves a GPU.
  std::vector<int> continued;
  std::vector<Delivery> deliveries;  ///< by start, then by first and by last send
};

/// The transfers of a schedule that the replay accepts. At a cut-through switch a send continues one that
/// enters at its instant and rate, at a store-and-forward switch one that has arrived. Of several it takes
/// one that nothing continues yet, else the latest, else the one that is continued least. In other schedules
/// a send that continues nothing (-1, though it leaves a switch) is part of no transfer.
Transfers transfers_of(const Topology& topology, const Demand& demand, std::span<const Send> sends);

/// Sets the cause of every delivery: of those of its chunk to its source the first to arrive.
void find_causes(const Demand& demand, std::vector<Delivery>& deliveries);

/// Per chunk and GPU the delivery that arrives first, of several at one time the first in the list.
ChunkGpuTable<int> first_arrivals(const Demand& demand, std::span<const Delivery> deliveries);

/// Marks what the demand needs: the first arrival at every destination, and their causes.
std::vector<char> needed_deliveries(const Demand& demand, std::span<const Delivery> deliveries);

/// Removes what is not marked. `T` has a cause, which is marked where what it causes is.
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
  }
  all.erase(all.begin() + static_cast<std::ptrdiff_t>(kept), all.end());
}

/// The sends, in their order, that the needed deliveries consist of.
std::vector<Send> pruned(const Topology& topology, const Demand& demand, std::span<const Send> sends);

}  // namespace rondo
