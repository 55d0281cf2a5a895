#pragma once

#include <optional>
#include <span>
#include <vector>

#include "rondo/core/collective.hpp"
#include "rondo/core/topology.hpp"
#include "rondo/decomp/flow_paths.hpp"
#include "rondo/graph/digraph.hpp"

/// Dantzig-Wolfe decomposition of maximum concurrent flow by commodity blocks (Dantzig and Wolfe, Operations
/// Research 8, 1960; for flows Ford and Fulkerson, Management Science 5, 1958): what of it is pure.
///
///   minimise    theta
///   subject to  sum over blocks b and their columns p of load_{r,p} weight_p <= capacity_r theta   (rows r)
///               sum over the columns p of b of weight_p = 1                                         (blocks
///               b)
///
/// A column of a block is a tree of shortest paths from its source that carries all it has to carry. For
/// prices y >= 0 of the rows with sum of capacity_r y_r = 1, the cost of the cheapest trees of all blocks is
/// at most theta of any solution (weak duality): every pricing proves a bound.
namespace rondo {

/// The data of one source.
struct CommodityBlock {
  int source = 0;
  std::vector<Sink> sinks = {};  ///< amounts > 0
};

/// Arcs that share a capacity.
struct CapacityRow {
  std::vector<int> arcs;
  double capacity = 0;  ///< > 0, of the sum of the arcs' flows for theta = 1
};

struct ConcurrentFlow {
  Digraph graph;
  std::vector<CapacityRow> rows;  ///< arcs in none of them are free
  std::vector<CommodityBlock> blocks;
};

/// The steady-state flow of unicast demand, one block a GPU that sends: arcs are the topology's links, flows
/// bytes, theta microseconds. The rows are the links in their order, then the groups of shared bandwidth.
/// Throws Error(unavailable) for multicast demand.
ConcurrentFlow steady_concurrent_flow(const Topology& topology, const Demand& demand);

/// Flow over time. Its nodes are those of the topology at the times 0 .. K; data may wait at GPUs, on arcs
/// that are free. K epochs suffice where theta is at most 1.
struct TimedConcurrentFlow {
  ConcurrentFlow flow;
  struct Send {
    LinkId link;
    int epoch = 0;
    int lands = 0;
  };
  std::vector<Send> sends;  ///< what the first arcs stand for; the others are waiting
};

/// One block a GPU that sends; flows are bytes. Nothing where K epochs are too few for some data to arrive.
/// Throws Error(unavailable) for multicast demand.
std::optional<TimedConcurrentFlow> timed_concurrent_flow(const Topology& topology, const Demand& demand,
                                                         double tau_us, int epochs);

struct ArcLoad {
  int arc = 0;
  double amount = 0;
  friend bool operator==(const ArcLoad&, const ArcLoad&) = default;
};

/// What a block's cheapest tree puts on the arcs, ascending, and what that costs.
struct FlowColumn {
  std::vector<ArcLoad> loads = {};
  double cost = 0;
};

/// Per arc, the sum of the prices of its rows.
std::vector<double> arc_lengths(const ConcurrentFlow& flow, const std::vector<double>& row_price);

/// load_r / capacity_r of a column's rows, ascending.
struct RowLoad {
  int row = 0;
  double theta = 0;
};

/// Prices blocks of one problem; keeps the graph between calls.
class BlockPricing {
 public:
  explicit BlockPricing(const ConcurrentFlow& flow);

  /// One length >= 0 an arc.
  void set_lengths(const std::vector<double>& length) { search_.set_lengths(length); }
  /// The cheapest column of block b. Throws Error(unavailable) where the source cannot reach a sink.
  FlowColumn price(std::size_t block);

 private:
  const ConcurrentFlow& flow_;
  ShortestPathSearch search_;
};

/// From arcs to rows.
class RowLoads {
 public:
  explicit RowLoads(const ConcurrentFlow& flow);
  std::vector<RowLoad> of(std::span<const ArcLoad> loads) const;

 private:
  const ConcurrentFlow& flow_;
  std::vector<std::vector<int>> rows_of_arc_;
};

/// Scaled so that the sum of capacity x price is 1; all rows alike (1 / capacity) where every price is 0.
std::vector<double> normalised_prices(const ConcurrentFlow& flow, std::vector<double> price);

/// (1 - share) a + share b
std::vector<double> mixed_prices(const std::vector<double>& a, const std::vector<double>& b, double share);

}  // namespace rondo
