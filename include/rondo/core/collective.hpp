#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rondo/core/collective_table.hpp"
#include "rondo/core/ids.hpp"
#include "rondo/core/topology.hpp"

namespace rondo {

/// A partial sum that a GPU other than by the rule holds at time 0 (a live state).
struct HeldSum {
  GpuId gpu = {};
  std::vector<GpuId> sources = {};  ///< ascending: whose data it is the sum of; none: it holds nothing

  friend bool operator==(const HeldSum&, const HeldSum&) = default;
};

/// Data that starts at one GPU, or at several, and is wanted whole by others, before it is split into chunks.
struct Contribution {
  GpuId origin = {};  ///< the first of the sources
  double bytes = 0;
  std::vector<GpuId> destinations = {};  ///< ascending, not empty; unless it reduces without the sources
  double ready_us = 0;                   ///< when all sources hold it, where source_ready_us is empty
  std::vector<GpuId> sources = {};       ///< ascending; empty: the origin alone
  bool reduce = false;  ///< what is wanted is the sum of the sources' data; else all sources hold the same
  std::vector<double> source_ready_us = {};  ///< one a source, or empty
  std::vector<HeldSum> held = {};            ///< of a contribution that reduces
  int tenant = 0;                            ///< whose data it is, 0 or more (rondo/core/tenants.hpp)
  double priority = 1;                       ///< of its tenant, > 0

  std::span<const GpuId> all_sources() const {
    return sources.empty() ? std::span(&origin, 1) : std::span<const GpuId>(sources);
  }
  /// When the source of that number has it.
  double ready_us_of(std::size_t source) const {
    return source_ready_us.empty() ? ready_us : source_ready_us[source];
  }
};

/// Which GPUs take part in a collective, with how many bytes each, and whether the others may help.
struct CollectiveShape {
  std::vector<GpuId> group = {};  ///< the members, ascending, at least two; empty: all GPUs
  /// Bytes of every member's part, in the order of the group; of AllToAll what each member has for each, by
  /// rows (part [i * members + j] goes from the i-th to the j-th). 0: none. Empty: all parts are equal.
  std::vector<double> counts = {};
  bool relays = true;  ///< GPUs outside the group may pass on what they receive; false needs a group

  bool is_plain() const { return group.empty() && counts.empty(); }
  friend bool operator==(const CollectiveShape&, const CollectiveShape&) = default;
};

/// The members of `shape`: its group, or all GPUs.
std::vector<GpuId> members_of(const CollectiveShape& shape, std::size_t num_gpus);
/// "0-7,16-23" of GPUs in ascending order.
std::string to_string(const std::vector<GpuId>& gpus);

/// " over GPUs 0-7,16-23", " by counts" and whether others relay; empty for the plain one.
std::string describe(const CollectiveShape& shape);

/// What engines can make use of. Data with one source and one destination each: nothing is gained by copying.
/// Data with one source: copying pays. Sums for one destination each: the transposed of the two before. Sums
/// for several (AllReduce), and everything mixed or with several holders.
enum class DemandKind { unicast, multicast, reduction, all_reduction };

/// Who needs which data. Contribution i is split into `chunks_per_contribution()` equal chunks, numbered
/// i * chunks_per_contribution() + k. Immutable.
class Demand {
 public:
  /// Throws Error(bad_data) for GPU numbers out of range or outside of the shape's group, an empty or
  /// repeated list of destinations or sources, a sum of one source, held sums that share a source at one GPU
  /// or name others, bytes that are not positive and finite, a negative or infinite ready time, chunks < 1,
  /// no contribution at all, a negative tenant, priorities that are not positive and finite or differ within
  /// a tenant, or a shape that check_shape() refuses; Error(unavailable) beyond 2^24 chunks or
  /// 1e8 destinations summed over chunks. Sorts the destinations.
  Demand(Collective collective, double size_bytes, std::size_t num_gpus,
         std::vector<Contribution> contributions, int chunks_per_contribution, CollectiveShape shape = {});

  Collective collective() const { return collective_; }
  double size_bytes() const { return size_bytes_; }  ///< as FORMATS.md 2 defines it for the collective
  std::size_t num_gpus() const { return num_gpus_; }
  /// Who takes part. `contributions` says all that has to move; the shape says for whom and by whom.
  const CollectiveShape& shape() const;
  /// The GPUs that take part, ascending.
  std::vector<GpuId> members() const { return members_of(shape(), num_gpus_); }
  /// Whether GPUs outside the group may neither send nor receive.
  bool forbids_relays() const { return shape_ && !shape_->relays; }
  const std::vector<Contribution>& contributions() const { return *contributions_; }
  int chunks_per_contribution() const { return chunks_; }

  std::size_t num_chunks() const { return contributions_->size() * static_cast<std::size_t>(chunks_); }
  const Contribution& contribution(ChunkId c) const {
    return (*contributions_)[c.index() / static_cast<std::size_t>(chunks_)];
  }
  /// Chunks times their destinations: the least number of sends without switches.
  double num_deliveries() const;
  GpuId origin(ChunkId c) const { return contribution(c).origin; }
  std::span<const GpuId> destinations(ChunkId c) const { return contribution(c).destinations; }
  double bytes(ChunkId c) const { return contribution(c).bytes / chunks_; }
  double bytes(std::span<const ChunkId> together) const {
    double sum = 0;
    for (const ChunkId c : together) sum += bytes(c);
    return sum;
  }
  double ready_us(ChunkId c) const { return contribution(c).ready_us; }

  DemandKind kind() const { return kind_; }
  /// Every contribution has one source and one destination (AllToAll, Scatter, Gather).
  bool is_unicast() const { return kind_ == DemandKind::unicast; }
  /// Sums are asked for, or some datum has several holders: what `origin` says is not all.
  bool has_several_sources() const {
    return kind_ == DemandKind::reduction || kind_ == DemandKind::all_reduction;
  }
  /// All chunks have this many bytes; nothing where they differ.
  std::optional<double> uniform_chunk_bytes() const { return uniform_chunk_bytes_; }

  /// The same demand of another size: all bytes grow alike. Throws Error(bad_data) for a size that is not
  /// positive and finite.
  Demand with_size(double size_bytes) const;
  /// The same data in another number of chunks.
  Demand with_chunks(int chunks_per_contribution) const;

 private:
  Collective collective_;
  double size_bytes_;
  std::size_t num_gpus_;
  std::shared_ptr<const std::vector<Contribution>> contributions_;  ///< the same for any number of chunks
  std::shared_ptr<const CollectiveShape> shape_;                    ///< null: the plain one
  int chunks_;
  DemandKind kind_ = DemandKind::unicast;
  std::optional<double> uniform_chunk_bytes_;
};

/// Throws Error(bad_data) for a group with GPUs out of range, named twice or not ascending, with one member
/// or with all GPUs and no relays to forbid, and for counts that are as many as neither the members nor
/// (AllToAll) their pairs, negative, not finite or of a collective that has none.
void check_shape(const CollectiveShape& shape, Collective collective, std::size_t num_gpus);

/// The size that `counts` give the collective: what they sum to; of AllToAll the most that one member sends
/// or ends with, its own part included.
double size_of_counts(Collective collective, const CollectiveShape& shape, std::size_t num_gpus);

/// The demand of a named collective (not `custom`) over `num_gpus` GPUs, or over the group of `shape`; sizes
/// as in FORMATS.md 2. Where the shape has counts they are scaled to the size. `root` has to be absent or 0
/// for a collective without one. Throws Error(usage) for a root out of range or outside the group, and what
/// check_shape() throws.
Demand make_demand(Collective collective, double size_bytes, std::size_t num_gpus, int chunks,
                   GpuId root = GpuId{0}, const CollectiveShape& shape = {});

/// The root of a demand of a collective that has one; GPU 0 for others.
GpuId root_of(const Demand& demand);

/// Whether `demand` (which may come from a file) asks exactly for its named collective at its size and shape:
/// returns what is wrong, or nothing. A custom demand is right whenever its bytes sum to the size.
std::optional<std::string> mismatch_with_collective(const Demand& demand);

/// Whether two demands ask for the same data of the same GPUs, cut into whatever chunks: returns what
/// differs, or nothing.
std::optional<std::string> difference(const Demand& asked, const Demand& found);

/// Throws Error(bad_data), naming the GPUs, when some destination cannot be reached from the origin of its
/// data over GPUs that may relay.
void check_reachable(const Topology& topology, const Demand& demand);

}  // namespace rondo
