#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "rondo/core/collective.hpp"
#include "rondo/core/ids.hpp"
#include "rondo/core/topology.hpp"

namespace rondo {

/// A pair that exchanges data: the bound is its latency distance. Where several GPUs hold what the source has
/// for the destination, the distance from the nearest of them.
struct LatencyCertificate {
  GpuId source;
  GpuId destination;
};

/// `bytes` must leave the node set S, or enter it where all data are sums for one GPU each (FORMATS.md 3; for
/// AllGather the cut of ForestColl, arXiv 2402.06787, section 3).
struct CutCertificate {
  std::vector<NodeId> nodes;  ///< S, ascending
  double bytes = 0;
};

/// Data of one source for the same destinations, by which a metric with periods names it.
struct MetricDatum {
  GpuId source;
  std::vector<GpuId> destinations;  ///< ascending

  friend bool operator==(const MetricDatum&, const MetricDatum&) = default;
};

/// The part of a length that counts on the path of a datum to one of its destinations.
struct MetricShare {
  std::int32_t datum = 0;
  GpuId destination = {};
  std::int32_t place = 0;  ///< of MetricCertificate::length
  double length = 0;

  friend bool operator==(const MetricShare&, const MetricShare&) = default;
};

/// Link lengths: every pair's bytes times its shortest distance must be carried by links of this total
/// capacity (the dual of maximum concurrent flow). With periods, lengths differ between them and data may
/// have several destinations: each has its share of the lengths, and the distances in them add up.
struct MetricCertificate {
  std::vector<double> length;  ///< one a link, >= 0; with periods one a link for each period
  std::vector<double> from_us =
      {};  ///< when periods begin, ascending from 0; empty: unicast demand, no periods
  std::vector<MetricDatum> data = {};  ///< those with shares; of others the farthest destination counts
  std::vector<MetricShare> shares = {};
};

/// For sums that several want (AllReduce): disjoint node sets, each with a GPU; the other nodes are switches
/// outside. Let B be the bytes of the sums of which each of the k sets holds some data alone at first, and
/// wants all. If no switch outside adds, at least 2 (k - 1) B bytes enter the sets; if none copies, as many
/// leave them: for each byte such a send is a call of one-way gossip among k, which needs 2k - 2 (Harary and
/// Schwenk, "The communication problem on graphs and digraphs", J. Franklin Institute 297, 1974).
struct PartitionCertificate {
  std::vector<int> part;  ///< one a node: its set, 0 to k - 1; -1 for a switch outside
  bool enter = true;      ///< whether bytes that enter sets are counted, or those that leave them
};

/// A cut in space and time: node v is open from alpha(v) on. What `gpu` wants of GPUs that are open when they
/// first have it must pass to where it is closed if the schedule is to end before alpha(gpu), and links can
/// carry no more of it than they do between the opening of their two ends (FORMATS.md 3).
struct TimeCutCertificate {
  GpuId gpu;                     ///< the destination; where backwards, the source
  std::vector<double> alpha_us;  ///< one a node, >= 0; where backwards, counted back from the end
  /// For demand of kind unicast or reduction: what `gpu` has for others, in the transposed problem.
  bool backwards = false;
  /// Ascending. Not empty: of the sums that `gpu` wants the contributions of these count, one by one, and
  /// what a link carries counts as often as one byte of it may have contributions of them (FORMATS.md 3).
  std::vector<GpuId> sources = {};
};

/// Prices over time, for unicast demand: what a byte pays for each link that it takes, by the period in which
/// it leaves. If all bytes together have to pay as much for being there before `until_us` as links can earn
/// by then, no schedule ends earlier (FORMATS.md 3).
struct PricesCertificate {
  std::vector<double> from_us;      ///< when periods begin, ascending from 0
  double until_us = 0;              ///< when the last one ends: the bound
  std::vector<std::int32_t> place;  ///< ascending: period x rows + row; rows are the links, then the groups
  std::vector<double> price;        ///< one a place, >= 0; 0 elsewhere
};

/// One of the time cuts that are taken together.
struct WeightedTimeCut {
  GpuId gpu;
  double weight = 0;             ///< >= 0
  std::vector<double> alpha_us;  ///< as of TimeCutCertificate

  friend bool operator==(const WeightedTimeCut&, const WeightedTimeCut&) = default;
};

/// Time cuts of several GPUs that share the links, for fabrics where not all switches copy: what passes such
/// a switch serves but one of those that it leads to. Prices over time pay for it: a byte on its way between
/// places that may copy, over such switches alone, pays at least the weights of the time cuts that it takes
/// it through, from open to closed. If these, each times what has to pass, are as much as links can earn, no
/// schedule ends earlier (FORMATS.md 3).
struct JointCutsCertificate {
  PricesCertificate prices;  ///< until_us is the bound
  std::vector<WeightedTimeCut> cuts;
  /// For demand of kind unicast or reduction: what the GPUs have for others, in the transposed problem.
  bool backwards = false;
};

/// What GPUs can have by when, where messages cost: what `gpu` wants of the sources named doubles only as
/// often as messages follow one another. Until the last of the times it cannot have all of it (FORMATS.md 3).
struct KnowledgeCertificate {
  GpuId gpu;                              ///< the destination; where backwards, the source
  std::vector<GpuId> sources;             ///< whose data counts, ascending; where backwards, destinations
  std::vector<std::vector<NodeId>> sets;  ///< of nodes, each ascending: what they can have together
  std::vector<double> times_us;           ///< ascending from 0
  /// For demand of kind unicast or reduction: what `gpu` has for others, in the transposed problem.
  bool backwards = false;
};

/// Prices over time where messages cost: a byte pays for as long as the message that brings it keeps each of
/// its links, and is at the far end once all of the message is. If all bytes that count have to pay more for
/// being there before `prices.until_us` than links can earn by then, no schedule ends earlier (FORMATS.md 3).
struct MessagePricesCertificate {
  PricesCertificate prices;  ///< until_us is the bound
  int parts = 1;   ///< of each period, equally long: what starts within one is as early as it begins
  GpuId gpu = {};  ///< what it wants counts, where backwards what it has for others; invalid: all of unicast
                   ///< demand
  /// For demand of kind unicast or reduction: of the transposed problem.
  bool backwards = false;
};

using Certificate = std::variant<LatencyCertificate, CutCertificate, MetricCertificate, PartitionCertificate,
                                 TimeCutCertificate, PricesCertificate, KnowledgeCertificate,
                                 JointCutsCertificate, MessagePricesCertificate>;

/// A time before which no schedule of the demand can end, in any number of chunks.
struct LowerBound {
  double us = 0;
  Certificate certificate;
};

/// "latency", "cut", "metric", "partition", "time_cut", "prices", "knowledge", "joint_cuts",
/// "message_prices".
std::string certificate_kind(const Certificate& certificate);

/// Bytes that must leave S. Unicast: every pair that crosses. Else a contribution counts once: data if all
/// its sources are in S and a destination is outside, a sum if data that it needs is held in S alone and a
/// destination is outside. Where `demand` is of kind reduction, bytes that must enter S: the sums for GPUs in
/// S that have a source outside. `inside` holds one flag a node.
double bytes_leaving(const Topology& topology, const Demand& demand, const std::vector<char>& inside);

/// Derives the bound (us) from its certificate by the arithmetic of FORMATS.md 3 (latency distances and one
/// equation in T, solved in closed form). Where bandwidth changes, a link's bytes are the integral over time.
/// Shared bandwidth, message costs and ready times are left out of account, which never overstates; time
/// cuts and prices, of messages too, alone count them, and knowledge counts the last two. Demand of kind
/// reduction: what the certificate proves of the transposed problem, a latency pair, time cuts, knowledge and
/// prices of messages of a destination apart. Links that no GPU of S reaches carry nothing and are left out.
/// Throws Error(bad_data) when the certificate does not hold: a pair that exchanges nothing, ids out of
/// range, no byte to leave S or other bytes than stated (1e-9 relative), no link out of S that leads to all
/// who want some data, a length that is negative or not finite, lengths that keep no pair apart, a metric for
/// data with several sources or destinations, sets without a GPU, a GPU in no set, a switch outside that
/// makes sends one or many, no sum that is needed in every set, links that are down for ever, a time cut
/// through which links can carry more than it separates, prices that let links earn more than bytes pay,
/// these or what is proven of the transposed problem where bandwidth changes, knowledge of a GPU that may
/// have all before the last time.
double bound_of(const Topology& topology, const Demand& demand, const Certificate& certificate);

/// The time before which no schedule ends that moves `demand` in its own chunks: the cut or partition of
/// sound_bound_of with the chunks counted that each of its links can have carried whole. Never below
/// sound_bound_of; the same for other certificates, and where chunks differ in bytes or bandwidth changes.
/// Proves nothing about other chunkings.
double whole_chunk_bound_of(const Topology& topology, const Demand& demand, const Certificate& certificate);

/// What the certificate really proves; never above bound_of, and the same except for some multicast cuts.
/// There FORMATS.md adds the least over links e of the greatest distance from e's head to a destination, as
/// if the last byte left S over one link. Copies of it may leave over several links, each near its own
/// destination, so this adds the greatest over destinations of the least over links. Three fully connected
/// GPUs, AllGather, 1 us links, S = one GPU: bound_of adds 2 us, a schedule needs 1 us. All that Rondo
/// reports as a bound is this.
double sound_bound_of(const Topology& topology, const Demand& demand, const Certificate& certificate);

}  // namespace rondo
