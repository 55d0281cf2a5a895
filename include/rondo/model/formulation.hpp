#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "rondo/core/collective.hpp"
#include "rondo/core/epoch_grid.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/core/topology.hpp"
#include "rondo/model/flow_orbits.hpp"
#include "rondo/model/linear_model.hpp"
#include "rondo/model/solver.hpp"

namespace rondo {

/// Part of a flow over time that another problem has fixed. `amount` bytes leave `src` evenly in the epochs
/// from .. to - 1, if the whole demand is delivered, and of a share of it that share; they can leave `dst`
/// `delay` epochs later. No link need lead from `src` to `dst`.
struct FixedFlow {
  GpuId origin;
  NodeId src;
  NodeId dst;
  int from = 0;
  int to = 0;
  int delay = 0;
  double amount = 0;  ///< bytes, where all is delivered
};

/// The input of a formulation. `grid` is absent for models without time. Flows by origin are built for the
/// `orbits` and decoded for one origin of each; without them every origin and link is its own orbit.
struct Instance {
  std::shared_ptr<const Topology> topology;
  Demand demand;
  std::optional<EpochGrid> grid = std::nullopt;
  std::shared_ptr<const FlowOrbits> orbits = nullptr;
  /// Flows over time are the same in all epochs of an interval: the intervals' first epochs, ascending from
  /// 0. Empty: every epoch is one.
  std::vector<int> interval_starts = {};
  /// Of the multicast MILP: whether early delivery is rewarded (core/early_delivery.hpp).
  bool rewards_early = false;
  /// Whether it is a transposed problem: schedules of the one that is meant run backwards in time.
  bool backwards = false;
  /// Whether schedules become part of others: bounds that take long are left out.
  bool is_part = false;
  /// Where the columns are dealt among ranks: entries outside this share may be left out, see
  /// LinearModel::kept, and flows over time are numbered by time, so that few rows have entries in several
  /// shares.
  std::optional<ColumnShare> share = std::nullopt;
  /// Part of flows over time, which are built around it; not together with `orbits`.
  std::vector<FixedFlow> fixed_flows = {};
};

/// First epochs of the instance's intervals, then the number of epochs; it has a grid.
std::vector<int> interval_bounds(const Instance& instance);

/// A decoded solution, possibly fractional.
struct FlowField {
  struct Entry {
    int commodity = 0;  ///< an origin GPU or a chunk, as the formulation defines
    LinkId link;
    int epoch = 0;      ///< 0 in models without time; of an interval the first one
    double amount = 0;  ///< bytes of the origin's data; for a chunk, 1 = the whole chunk
    int lands = 0;      ///< flows over time: the epoch (first of its interval) from which it can be sent on
    int from = 0;       ///< flows over time: it is sent evenly in the epochs from .. to - 1
    int to = 0;
  };
  std::vector<Entry> entries = {};
  std::vector<double> link_price =
      {};                ///< one a link, >= 0: duals of the capacities, where the model has them
  double finish_us = 0;  ///< the model's own finish time; not a schedule's
};

/// A linear model with its decoder and encoder. All members are pure.
struct BuiltModel {
  LinearModel model;
  std::function<FlowField(const Solution&)> decode;
  /// Values of all columns for a schedule that lies on the grid; nothing where it does not fit the model.
  std::function<std::optional<std::vector<double>>(const Schedule&)> encode = nullptr;
};

/// A formulation is a pure function from an instance to a model.
using Formulation = std::function<BuiltModel(const Instance&)>;

}  // namespace rondo
