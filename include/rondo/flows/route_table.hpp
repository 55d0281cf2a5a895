#pragma once

#include <map>
#include <vector>

#include "rondo/core/collective.hpp"
#include "rondo/core/hops.hpp"
#include "rondo/decomp/flow_paths.hpp"
#include "rondo/graph/digraph.hpp"
#include "rondo/model/formulation.hpp"

namespace rondo {

/// A way of a contribution from its origin to its destination.
struct Route {
  std::vector<int> hops;              ///< into RouteTable::hops
  double bytes = 0;                   ///< what the model sends this way
  std::vector<double> start_us = {};  ///< per hop, when the model starts it; empty in models without time
};

struct RouteTable {
  std::vector<Hop> hops;  ///< those of the HopTable first
  std::vector<std::vector<Route>> of_contribution = {};
};

/// Positions of the contributions of every GPU that sends.
std::map<GpuId, std::vector<std::size_t>> contributions_by_origin(const Demand& demand);

/// Turns paths over links into routes; hops that the HopTable lacks (longer paths through switches) are
/// added.
class RouteBuilder {
 public:
  RouteBuilder(const Topology& topology, const Demand& demand);

  /// `start_us`: per link of the path, or empty.
  void add(std::size_t contribution, const std::vector<LinkId>& path, double bytes,
           const std::vector<double>& start_us = {});
  RouteTable build() { return std::move(table_); }

 private:
  int hop_over(const std::vector<LinkId>& path);

  const Topology& topology_;
  RouteTable table_;
  std::map<std::vector<LinkId>, int> hop_of_path_;
};

}  // namespace rondo
