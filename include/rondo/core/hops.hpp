#pragma once

#include <span>
#include <vector>

#include "rondo/core/bandwidth_groups.hpp"
#include "rondo/core/collective.hpp"
#include "rondo/core/ids.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/core/topology.hpp"
#include "rondo/core/units.hpp"

/// GPU-to-GPU transfers as continuous-time engines see them: a path through switches, reserved as a whole.
namespace rondo {

/// Room for rounding when times that ought to be equal are compared; far below the replay's own tolerance.
inline double time_slack_us(double t_us) {
  return 1e-9 + 1e-12 * t_us;
}

/// One link of a hop. A transfer of b bytes that starts the hop at t occupies the link during
/// [t + offset_us + b * offset_us_per_byte, + message_us + b * us_per_byte).
struct HopLink {
  LinkId link;
  double offset_us = 0;
  double offset_us_per_byte = 0;  ///< > 0 only behind a store-and-forward switch
  double message_us = 0;          ///< greatest of the cut-through section that the link belongs to
  double us_per_byte = 0;         ///< at the section's rate

  double offset_us_of(double bytes) const { return offset_us + bytes * offset_us_per_byte; }
  double occupied_us(double bytes) const { return message_us + bytes * us_per_byte; }
  double rate_GBps() const { return transmission_us(1, 1) / us_per_byte; }
  /// What is left of the rate when message after message of `bytes` goes over the link.
  double goodput_GBps(double bytes) const {
    return message_us > 0 ? transmission_us(bytes, 1) / occupied_us(bytes) : rate_GBps();
  }
};

/// A path from one GPU to another with only switches between them.
struct Hop {
  GpuId src;
  GpuId dst;
  std::vector<HopLink> links;
  double fixed_us =
      0;  ///< from the start to the arrival: latencies of all links, message costs of all sections
  double us_per_byte = 0;  ///< the same, for the bytes

  double duration_us(double bytes) const { return fixed_us + bytes * us_per_byte; }
};

/// A chunk that starts over a hop; hops and chunks are numbered as whoever makes moves does.
struct Move {
  ChunkId chunk;
  int hop = 0;
  double start_us = 0;
};

/// Appends the sends of a chunk of `bytes` that starts the hop at `t_us`, one a link.
void append_sends(const Topology& topology, const Hop& hop, ChunkId chunk, double bytes, double t_us,
                  std::vector<Send>& sends);

/// The hop over consecutive links from a GPU to a GPU with only switches between; or, with the position of
/// the link before each (-1 for the first one), over the tree of a transfer that switches copy: its
/// destination, latency and duration are then those of the branch to the last link. A link comes after the
/// one before it.
Hop make_hop(const Topology& topology, std::span<const LinkId> links, std::span<const int> parents = {});

inline constexpr std::size_t kAllPeers = static_cast<std::size_t>(-1);

/// The hops from `src`, by destination: the paths with the fewest links, at most `max_paths` a destination,
/// fastest first. Where more than `max_peers` GPUs are equally far behind the same switch, only those at
/// distances of 1, 2, 4, ... GPU numbers up and down are kept: enough to reach all others in few steps.
std::vector<Hop> hops_from(const Topology& topology, GpuId src, std::size_t max_paths = 4,
                           std::size_t max_peers = kAllPeers);

/// All hops of a topology: for every pair of GPUs that links and switches join without a GPU between, the
/// paths with the fewest links, at most `max_paths` a pair, fastest first.
class HopTable {
 public:
  explicit HopTable(const Topology& topology, std::size_t max_paths = 4);

  const std::vector<Hop>& hops() const { return hops_; }
  const Hop& hop(int h) const { return hops_[static_cast<std::size_t>(h)]; }
  std::span<const int> out_of(GpuId g) const { return out_[g.index()]; }
  std::span<const int> into(GpuId g) const { return in_[g.index()]; }
  std::size_t num_gpus() const { return out_.size(); }

  /// Time of the fastest relay over GPUs for `bytes`, per (source, destination): source * num_gpus() +
  /// destination; infinity where there is none, 0 on the diagonal. Chunks move whole from GPU to GPU.
  std::vector<double> relay_distance_us(double bytes) const;

 private:
  std::vector<Hop> hops_;
  std::vector<std::vector<int>> out_;
  std::vector<std::vector<int>> in_;
};

/// Which links are taken until when, shared bandwidth included. Times only move forward on a link: a
/// reservation starts no earlier than the last one on it ended.
class LinkTimetable {
 public:
  explicit LinkTimetable(const Topology& topology);

  /// Whether a chunk of `bytes` may start `hop` at `t_us`.
  bool can_start(const Hop& hop, double bytes, double t_us) const;
  /// The earliest start >= `not_before_us`.
  double earliest_start(const Hop& hop, double bytes, double not_before_us) const;
  /// Reserves and appends the sends, one a link. Returns the arrival at hop.dst.
  double reserve(const Hop& hop, ChunkId chunk, double bytes, double t_us, std::vector<Send>& sends);
  /// Takes note of a send of `bytes` that is reserved already, in any order. Where it has a message cost and
  /// no rate, it counts at its link's bandwidth, which is at least its rate.
  void occupy(const Send& send, double bytes);
  double free_from(LinkId link) const { return free_from_[link.index()]; }

 private:
  const Topology& topology_;
  std::vector<double> free_from_;
  BandwidthGroups groups_;
};

}  // namespace rondo
