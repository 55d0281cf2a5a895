#pragma once

#include <optional>
#include <vector>

#include "rondo/core/certificate.hpp"
#include "rondo/core/collective.hpp"
#include "rondo/core/topology.hpp"
#include "rondo/model/column_master.hpp"
#include "rondo/model/deadline.hpp"

namespace rondo {

/// Links from GPU to GPU, through switches, in one of the packing's periods.
struct SteinerHop {
  std::vector<LinkId> links = {};
  std::size_t period = 0;

  friend auto operator<=>(const SteinerHop&, const SteinerHop&) = default;
};

/// An out-tree from where data is to all that want it, over any GPUs between; a path where one wants it.
/// Each hop begins at the root or where one before it ends.
struct SteinerTree {
  double weight = 0;  ///< the share of the data that takes it
  std::vector<SteinerHop> hops = {};
};

/// Data of one origin for the same destinations from the same time on.
struct SteinerBlock {
  GpuId origin = {};
  std::vector<GpuId> destinations = {};
  double ready_us = 0;
  double bytes = 0;
  std::vector<std::size_t> contributions = {};  ///< of the demand
  std::vector<SteinerTree> trees = {};          ///< earliest first, heaviest first; the weights sum to 1
};

struct SteinerPacking {
  std::vector<double> from_us = {};  ///< periods: each until the next one begins, the last until busy_us
  std::vector<SteinerBlock> blocks = {};
  double busy_us = 0;  ///< when the last link or group of links has carried its part, latency aside
  int iterations = 0;  ///< masters solved
  /// Lengths of links that prove how early a schedule can end at best, as far as they could be found.
  MetricCertificate prices = {};
};

/// Whether trees to some of the GPUs, or paths beside trees, are what the demand takes: data with one source
/// each, not all of it alike for all others (AllGather, Broadcast).
bool takes_steiner_trees(const Demand& demand);

/// How much of a packing's work one iteration is: links looked at for each destination.
double steiner_work(const Topology& topology, const Demand& demand);
inline constexpr double kMostSteinerWork = 4e6;
inline constexpr int kMostSteinerMasters = 300;

/// The fractional packing of out-trees for data with one source each that takes the least time. Ready times
/// part the time into periods; in each of them but the last links carry no more than fits, and the last is as
/// short as can be. By columns: the master chooses weights, its prices the next tree of every block. A tree
/// grows in the arcs that dual ascent leaves free, the destination next that is cheapest to reach (Takahashi
/// and Matsuyama, "An approximate solution for the Steiner problem in graphs", Math. Japonica 24, 1980); what
/// dual ascent proves of all trees at once bounds what any packing can do. Switches do not copy. Ends where
/// bound and packing are 0.05 % apart, where the bound has not risen for long, after `most_iterations` or
/// fewer where each is much work, or past the deadline.
SteinerPacking pack_steiner_trees(const Topology& topology, const Demand& demand,
                                  const MakeColumnMaster& make_master, int most_iterations,
                                  const Deadline& deadline);

}  // namespace rondo
