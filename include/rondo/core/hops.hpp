#pragma once

#include <span>
#include <vector>

#include "rondo/core/collective.hpp"
#include "rondo/core/ids.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/core/time_slack.hpp"
#include "rondo/core/topology.hpp"
#include "rondo/core/units.hpp"

/// GPU-to-GPU transfers as continuous-time engines see them: a path through switches, reserved as a whole.
namespace rondo {

/// A transfer that takes a smaller part of a link's bandwidth than 1 minus this leaves room for others.
inline constexpr double kWholeLink = 1e-9;

/// One link of a hop. A transfer of b bytes that starts the hop at t occupies the link during
/// [t + offset_us + b * offset_us_per_byte, + message_us + b * us_per_byte).
struct HopLink {
  LinkId link;
  double offset_us = 0;
  double offset_us_per_byte = 0;  ///< > 0 only behind a store-and-forward switch
  double message_us = 0;          ///< greatest of the cut-through section that the link belongs to
  double us_per_byte = 0;         ///< at the section's rate
  double share = 1;               ///< the rate, as a part of the link's bandwidth

  double offset_us_of(double bytes) const { return offset_us + bytes * offset_us_per_byte; }
  double occupied_us(double bytes) const { return message_us + bytes * us_per_byte; }
  /// How long the link's whole bandwidth would take for what the transfer takes of it.
  double load_us(double bytes) const { return share * occupied_us(bytes); }
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
  /// From the start to the arrival: the latencies of all links and the message costs of all sections.
  double fixed_us = 0;
  double us_per_byte = 0;  ///< the same, for the bytes
  double divisor = 1;      ///< of the rates: the bandwidth of each section's slowest link, divided by this
  /// Some link's bandwidth changes (hop_timing.hpp). A transfer then has its links alone, at what all of them
  /// have at every instant; us_per_byte and durations are those of the bandwidths at time 0.
  bool changes = false;
  double longest_us_per_byte = 0;  ///< where it changes: at the least bandwidths other than 0

  double duration_us(double bytes) const { return fixed_us + bytes * us_per_byte; }
};

/// A chunk that starts over a hop; hops and chunks are numbered as whoever makes moves does.
struct Move {
  ChunkId chunk;
  int hop = 0;
  double start_us = 0;
};

/// The same hop at a rate lower by a factor.
Hop slowed(Hop hop, double divisor);

/// Appends the sends of a transfer that starts the hop at `t_us`, one a link and chunk; `bytes`: of all its
/// chunks together. Where there are several chunks, the rate is below that of the slowest link, or bandwidth
/// changes on one of several links, each section has a transfer number: the position of its first send.
void append_sends(const Topology& topology, const Hop& hop, std::span<const ChunkId> chunks, double bytes,
                  double t_us, std::vector<Send>& sends);
inline void append_sends(const Topology& topology, const Hop& hop, ChunkId chunk, double bytes, double t_us,
                         std::vector<Send>& sends) {
  append_sends(topology, hop, std::span(&chunk, 1), bytes, t_us, sends);
}

/// The hop over consecutive links from a GPU to a GPU with only switches between; or, with the position of
/// the link before each (-1 for the first one), over the tree of a transfer that switches copy: its
/// destination, latency and duration are then those of the branch to the last link. A link comes after the
/// one before it.
Hop make_hop(const Topology& topology, std::span<const LinkId> links, std::span<const int> parents = {});

inline constexpr std::size_t kAllPeers = static_cast<std::size_t>(-1);

/// The hops from `src`, by destination: the paths with the fewest links, at most `max_paths` a destination,
/// and, where none of them is as wide, one whose slowest link is as fast as there is; fastest first. Where
/// more than `max_peers` GPUs are equally far behind the same switch, only those at distances of 1, 2, 4, ...
/// GPU numbers up and down are kept: enough to reach all others in few steps.
std::vector<Hop> hops_from(const Topology& topology, GpuId src, std::size_t max_paths = 4,
                           std::size_t max_peers = kAllPeers);

/// All hops of a topology: for every pair of GPUs that links and switches join without a GPU between, the
/// paths of hops_from(), at their rates divided by `divisor`.
class HopTable {
 public:
  static constexpr std::size_t kMostPaths = 4;
  explicit HopTable(const Topology& topology, std::size_t max_paths = kMostPaths, double divisor = 1);

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

}  // namespace rondo
