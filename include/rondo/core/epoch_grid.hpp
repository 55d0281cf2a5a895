#pragma once

#include <vector>

#include "rondo/core/collective.hpp"
#include "rondo/core/topology.hpp"

namespace rondo {

enum class EpochRule { fastest_link, slowest_link, fixed };

/// How a time-expanded flow uses the epochs.
enum class EpochSpacing {
  automatic,  ///< coarse where uniform is too large
  uniform,    ///< flows of their own in every epoch
  coarse      ///< constant flows in longer and longer intervals away from both ends, and in one between them
};

struct EpochOptions {
  EpochRule rule = EpochRule::fastest_link;
  double multiplier = 1;  ///< tau is multiplied by it (TE-CCL's EM)
  double tau_us = 0;      ///< the epoch itself, for EpochRule::fixed
  int num_epochs = 0;     ///< 0: found by the engine from an incumbent or by upper_bound_epochs
  EpochSpacing spacing = EpochSpacing::automatic;  ///< engine lp
};

/// The time axis of a time-expanded model for chunks of one size (TE-CCL, sections 3 and appendix F). A chunk
/// that is sent over link l in epoch k occupies l in epochs k .. k + occupancy[l] - 1 and can be sent on in
/// epoch k + landing[l]. Message costs are part of both. Both are rounded up, so that what holds on the grid
/// holds in continuous time.
struct EpochGrid {
  double tau_us = 0;
  double chunk_bytes = 0;
  int num_epochs = 0;          ///< as asked for; 0 until the engine knows
  std::vector<int> occupancy;  ///< per link, epochs, >= 1
  std::vector<int>
      landing;  ///< per link, epochs, >= 1: ceil((message_us + chunk_bytes / bandwidth + latency) / tau)
};

/// Epochs that cover `us`; what exceeds a whole number by rounding error alone (`slack`, relative beyond one
/// epoch) does not cost an epoch.
int epochs_covering(double us, double tau_us, double slack = 1e-9);

/// Per link, epochs after which fractional data sent over it can go on: that of sending and the latency
/// rounded up. Through a cut-through switch data goes within the epoch: the latency into it is carried over
/// to the link that leaves it, so that it costs whole epochs once. Switches in a row count theirs link by
/// link.
std::vector<int> flow_landing_epochs(const Topology& topology, double tau_us);

/// The grid of a demand with equal chunks. Throws Error(usage) for a multiplier or tau that is not positive
/// and finite or a negative number of epochs, Error(unavailable) where chunks differ in size, a chunk would
/// take more than a million epochs on a link, or data become ready only after the number of epochs asked for.
EpochGrid make_epoch_grid(const Topology& topology, const Demand& demand, const EpochOptions& options);

/// Epochs that certainly suffice, when no incumbent is known (in the spirit of TE-CCL, Algorithm 1): every
/// chunk in turn down the tree of shortest paths from its origin, or to one destination after the other where
/// the topology does not carry the whole tree at once (switches that cannot copy, shared bandwidth). Throws
/// Error(bad_data) for a destination out of reach.
int upper_bound_epochs(const Topology& topology, const Demand& demand, const EpochGrid& grid);

/// The topology in which a chunk of the grid's size takes exactly `occupancy` epochs on a link and lands
/// after exactly `landing` epochs: a schedule of it is a solution on the grid.
Topology snap_to_grid(const Topology& topology, const EpochGrid& grid);

}  // namespace rondo
