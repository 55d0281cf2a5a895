#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "rondo/core/index.hpp"
#include "timed_transfers.hpp"

/// The transfers of a schedule and what each of them waits for, to be put into another order.
namespace rondo {

/// Transfers of sends that the replay accepts; of sums no arrival comes before what left earlier without it.
class TransferNetwork {
 public:
  /// One transfer.
  struct Item {
    TransferSends transfer = {};
    TransferShape shape = {};
    double ready_us = 0;  ///< when its first GPU has what it holds by itself
    int unmet = 0;        ///< waits for so many others
    /// What waits for this one: for its start (kStart), or until it arrives over a link of its hop.
    struct Onward {
      int item;
      int link;  ///< position in shape.hop.links
    };
    std::vector<Onward> onward = {};
  };
  static constexpr int kStart = -1;

  TransferNetwork(const TimedSends& before, const Topology& topology, const Demand& demand);

  const std::vector<Item>& items() const { return items_; }
  const Topology& topology() const { return topology_; }
  /// The same sends, their transfers started at these times, one an item.
  Schedule schedule_at(std::span<const double> starts_us, int concurrency) const;

 private:
  /// What comes to a GPU or leaves it, of one chunk.
  struct Passage {
    int item;
    int send;  ///< position in its sends
    double at_us;
  };
  struct Place {
    std::vector<Passage> in = {};
    std::vector<Passage> out = {};
  };

  void find_dependences();
  void order_copies(const Place& place);
  void order_sum(const Place& place);
  double start_of(const Passage& passage) const { return items_[index(passage.item)].transfer.start_us; }
  SendOp op_of(const Passage& passage) const;
  void start_after(int item, int first);
  void rest(int item, const Passage& on);
  std::uint64_t key_of(ChunkId chunk, GpuId gpu) const {
    return static_cast<std::uint64_t>(chunk.index()) * topology_.num_gpus() + gpu.index();
  }

  const TimedSends& before_;
  const Topology& topology_;
  const Demand& demand_;
  std::vector<Item> items_;
};

/// The time of every item, in a list schedule: whenever a link is free, what is there to be sent and has the
/// least key starts. Throws Error(unavailable) where items wait for each other or for a link that stays down.
std::vector<double> list_starts_us(const TransferNetwork& network, std::span<const double> keys,
                                   int concurrency);

/// The same backwards in time, where no bandwidth changes.
class BackwardLists {
 public:
  explicit BackwardLists(const TransferNetwork& network);

  /// Per item how long before the end of all it starts, in a list schedule from the end to the start.
  std::vector<double> tails_us(std::span<const double> keys, int concurrency) const;
  /// With items started at these times, the last arrival.
  double finish_us(std::span<const double> starts_us) const;

 private:
  struct Before {
    int item;
    double lag_us;  ///< backwards, from the start of what waits for it to its own
  };
  const TransferNetwork& network_;
  std::vector<double> durations_us_;         ///< per item, to its last arrival
  std::vector<Hop> hops_;                    ///< per item, run through from its end
  std::vector<std::vector<Before>> before_;  ///< per item, what it waits for
};

}  // namespace rondo
