#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "rondo/core/schedule.hpp"
#include "rondo/core/transfers.hpp"

/// A collective that is running when links fail: what has happened by then, and what is left to do.
namespace rondo {

/// What becomes of a link at an instant.
struct LinkFailure {
  LinkId link;
  double factor = 0;  ///< of its bandwidth from then on; 0: the link is gone
};

/// Who has a chunk once all that is in flight has landed.
struct LiveHolder {
  GpuId gpu;
  double from_us = 0;               ///< of the running schedule's time
  std::vector<GpuId> sources = {};  ///< of a sum: whose data it is the sum of; ascending, not empty
};

/// A delivery of the running schedule that was lost or has not begun.
struct DeliveryLeft {
  ChunkId chunk;
  GpuId src;
  GpuId dst;
  std::vector<LinkId> path = {};  ///< from src to dst
  double start_us = 0;            ///< as it was planned
  double arrival_us = 0;
  SendOp op = SendOp::copy;
  bool is_lost = false;
  bool completes = false;  ///< after it dst has all of a sum, or the datum
};

struct LiveState {
  double at_us = 0;
  /// What has happened and what still lands, as in a Schedule; sends over several switches that began are
  /// whole.
  std::vector<Send> history = {};
  std::vector<std::vector<LiveHolder>> holders = {};  ///< per chunk, by GPU
  std::vector<DeliveryLeft> left = {};                ///< by start
  std::size_t lost = 0;                               ///< deliveries
  std::size_t in_flight = 0;                          ///< deliveries that land after at_us
  double landed_us = 0;                               ///< the last of these does; at_us where there is none
};

/// The state of `running`, which the replay accepts, at `at_us`, when the links fail. What has not wholly
/// arrived over a link that is gone is lost, and so is what a slower one still transmits; other transfers
/// that have begun land as they would have. Throws Error(bad_data) for a time that is negative or not before
/// the finish, Error(unavailable) where switches add or bandwidth changes over time, which it does not know.
LiveState live_state(const ProvenSchedule& running, double at_us, std::span<const LinkFailure> failures);

/// What is left to do, with time 0 at the instant of the failure.
struct RestDemand {
  /// `custom`, one chunk a contribution: those of the running demand that some GPU still waits for. Of a
  /// datum all holders are sources, ready when it has landed; of a sum `held` tells what each GPU has, as if
  /// all had landed at 0.
  Demand demand;
  std::vector<ChunkId> running;  ///< per chunk, the one of the running demand
};

/// Nothing where all that is wanted lands by itself.
std::optional<RestDemand> rest_demand(const Demand& running, const LiveState& state);

}  // namespace rondo
