#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "rondo/core/certificate.hpp"

/// The arithmetic of each kind of certificate, and what the kinds have in common. Demand of kind reduction
/// comes here as its transposed one, except for latency pairs and for time cuts, knowledge and prices of
/// messages of a destination.
namespace rondo::certificates {

inline constexpr double kUnreachable = std::numeric_limits<double>::infinity();

/// What is added to a cut for data that has left S: see bound_of and sound_bound_of.
enum class Tail { of_one_link, sound };

double bound(const Topology& topology, const Demand& demand, const LatencyCertificate& pair);
/// `piece_bytes` > 0: data crosses in whole pieces of so many.
double bound(const Topology& topology, const Demand& demand, const CutCertificate& cut, Tail tail,
             double piece_bytes = 0);
double bound(const Topology& topology, const Demand& demand, const MetricCertificate& metric);
/// Where metric.from_us is not empty.
double bound_with_periods(const Topology& topology, const Demand& demand, const MetricCertificate& metric);
double bound(const Topology& topology, const Demand& demand, const PartitionCertificate& partition,
             double piece_bytes = 0);
/// Of a destination: `backwards` is not looked at.
double bound(const Topology& topology, const Demand& demand, const TimeCutCertificate& cut);
double bound(const Topology& topology, const Demand& demand, const PricesCertificate& prices);
/// Of destinations; where it is `backwards` this is the transposed problem.
double bound(const Topology& topology, const Demand& demand, const JointCutsCertificate& joint);
/// Of a destination; of one that is `backwards` this is the transposed problem.
double bound(const Topology& topology, const Demand& demand, const KnowledgeCertificate& knowledge);
/// The same of one that is `backwards`.
double bound(const Topology& topology, const Demand& demand, const MessagePricesCertificate& prices);

/// Throws Error(bad_data).
[[noreturn]] void refuse_certificate(const std::string& message);
/// Refuses an empty list, ids that do not ascend and such as are not 0 to end - 1.
template <class Id>
void check_ascending(const std::vector<Id>& ids, std::size_t end, const char* what) {
  const auto is_wrong = [&](Id id) { return !id.valid() || id.index() >= end; };
  if (ids.empty() || std::ranges::any_of(ids, is_wrong) ||
      std::ranges::adjacent_find(ids, std::ranges::greater_equal{}) != ids.end())
    refuse_certificate(std::string(what) + " have to ascend and to be of 0 to " + std::to_string(end - 1));
}
/// Returns `us`; refuses infinity, which links that stay down give.
double checked_time(double us);

/// Per link.
std::vector<double> latencies(const Topology& topology);
std::vector<NodeId> gpu_nodes(const Topology& topology);
/// Per node, the distance from the nearest of `sources`, along the arcs of `graph`.
std::vector<double> distances_from_any(Digraph graph, std::vector<double> length,
                                       const std::vector<NodeId>& sources);

/// Whether all GPUs but the origin want a datum of one source: then nobody has to be looked for among its
/// destinations.
bool for_everybody(const Topology& topology, const Contribution& part);
/// The GPUs that hold at first what `source` brings to `part`, ascending: in a sum its own data, else the
/// data that all sources have.
std::vector<GpuId> holders_of(const Contribution& part, GpuId source);
/// When one of them has it; what is told to be held of a sum, from 0 on.
double ready_of_holder(const Contribution& part, GpuId holder);
/// Refuses a GPU that does not exist and times that are not one a node, finite and not negative.
void check_opening(const Topology& topology, GpuId gpu, const std::vector<double>& alpha_us);
/// Of what `gpu` wants, the bytes that nobody has before it is open there: of a sum, once, if that is so of
/// the data of one source. Node v is open from alpha(v) on.
long double bytes_that_start_open(const Topology& topology, const Demand& demand, GpuId gpu,
                                  const std::vector<double>& alpha_us);
/// Whether some of what makes up `part` is held in S alone and wanted outside, so that all its bytes have to
/// leave S.
bool has_to_leave(const Topology& topology, const Contribution& part, const std::vector<char>& inside);

}  // namespace rondo::certificates
