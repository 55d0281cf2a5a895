#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "joint_periods.hpp"
#include "place_ways.hpp"
#include "priced_rows.hpp"
#include "rondo/core/certificate.hpp"
#include "rondo/core/collective.hpp"
#include "rondo/decomp/orbits.hpp"
#include "rondo/model/deadline.hpp"
#include "rondo/model/solver.hpp"

namespace rondo {

/// What proves that data cannot be in time: prices, and time cuts with weights.
struct JointPrices {
  PriceGrid grid;
  std::vector<double> of_row;  ///< period by period
  struct Cut {
    std::size_t number;
    double weight;
  };
  std::vector<Cut> cuts;
};

/// The linear program of find_joint_cuts() for one end after another: what each way carries, by the period of
/// its starts, so that of what has to pass each time cut the greatest share does. Its rows are those of
/// PricedRows in each period and the time cuts; its ways are added as its prices ask for them, its cuts as
/// what is dealt out shows them. Ways of pairs of places that are alike count as one, and of alike GPUs one
/// has cuts.
class JointProgram {
 public:
  JointProgram(const Topology& topology, const Demand& demand, const Symmetry& symmetry, const Solver& solver,
               const Deadline& deadline);

  bool has_work_left() const;
  /// Nothing where links can carry all by `us`, as far as is seen, or the work is over.
  std::optional<JointPrices> solve(double us);
  /// With periods of `grid`, which is as many as in what solve() returned; of that since the last solve().
  JointCutsCertificate certificate(const JointPrices& found, const PriceGrid& grid) const;
  /// The periods with as late an end as these prices may prove; the same if it is no later.
  PriceGrid later(const JointPrices& found) const;

 private:
  /// A time relative to the start or to the end.
  struct Moment {
    double us;
    bool before_end;
  };
  /// Per node the period from which on it is open; as many as there are: until the end it is not.
  using Opening = std::vector<std::size_t>;
  struct WeightedOpening {
    const Opening* opening;
    double weight;
  };
  struct Cut {
    std::size_t target;             ///< of targets_
    double bytes;                   ///< in units
    std::vector<GpuId> gpus;        ///< the target and those like it
    std::vector<Opening> openings;  ///< one a GPU
  };
  /// A GPU of each orbit that wants something.
  struct Target {
    GpuId gpu;
    std::vector<Permutation> elements = {};                     ///< to each GPU of the orbit, itself first
    std::map<std::pair<NodeId, double>, double> bytes_of = {};  ///< by source and ready time, in units
    std::vector<double> earliest_us = {};                       ///< per node: when what it wants can be there
    std::vector<double> behind_us = {};           ///< per node: how long it takes from there to the GPU
    std::vector<std::vector<Moment>> known = {};  ///< openings of minimum cuts found so far
  };
  struct Column {
    NodeId from;
    NodeId to;
    double message_us;
    std::vector<TimedStart> starts;
    double until_us;
    double arrival_us;
  };
  struct Solved {
    double share = 0;
    std::vector<double> amount = {};  ///< per column
    JointPrices prices = {};
  };

  // joint_setup.cpp
  void find_pairs(const Symmetry& symmetry);
  void find_targets(const Symmetry& symmetry);

  std::size_t pair(NodeId from, NodeId to) const { return from.index() * topology_.num_nodes() + to.index(); }
  std::size_t period_near(double us) const;
  Opening opening_of(const std::vector<Moment>& moments) const;
  std::vector<Moment> moments_of(const Opening& opening) const;
  static double time_of(const PriceGrid& grid, std::size_t period) {
    return period == grid.size() ? grid.until_us : grid.from_us[period];
  }
  void start(double us);
  void add_first_ways();
  void add_first_cuts();
  /// Around a set of nodes: all of it closed until the end, or until it is too late to be at the target.
  void add_cut_around(std::size_t target, const std::vector<char>& closed, bool is_flat);
  bool add_cut(std::size_t target, Opening opening);
  /// For what leaves before `until_us`.
  bool is_open(const Opening& opening, NodeId from, double message_us, double until_us) const {
    return time_of(grid_, opening[from.index()]) + message_us < until_us;
  }
  bool is_closed(const Opening& opening, NodeId to, double arrival_us) const {
    return arrival_us < time_of(grid_, opening[to.index()]);
  }
  /// The part of the cut and those like it that the way goes through.
  double share_through(const Cut& cut, const Column& way) const;
  void remember(const JointPrices& prices);
  std::optional<Solved> solve_program();
  bool add_ways(const JointPrices& prices);
  /// Of each pair of places and first period the way that lacks most of what openings weigh that it goes
  /// through, more than `least_lack`, of those that cost less than `most_cost`. Returns whether there are
  /// some.
  bool add_ways(const std::vector<double>& cost, const std::vector<WeightedOpening>& openings,
                double most_cost, double least_lack);
  bool add_minimum_cuts(const Solved& solved);

  const Topology& topology_;
  const Demand& demand_;
  const Solver& solver_;
  const Deadline& deadline_;
  PlaceWays ways_;
  JointPeriods periods_;
  PricedRows rows_;
  std::vector<std::vector<std::pair<std::size_t, double>>> rows_of_link_;  ///< and how often
  std::vector<Target> targets_ = {};
  std::vector<std::size_t> pair_orbit_ = {};                        ///< per pair of nodes, that of places
  std::vector<std::vector<std::pair<NodeId, NodeId>>> pairs_ = {};  ///< per orbit
  double unit_bytes_ = 1;
  double work_ = 0;
  PriceGrid grid_ = {};
  std::vector<Cut> cuts_ = {};
  std::vector<Column> columns_ = {};
};

}  // namespace rondo
