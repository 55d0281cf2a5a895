#pragma once

#include <vector>

#include "rondo/core/hops.hpp"
#include "rondo/core/topology.hpp"

/// Transfers over hops some link of which changes its bandwidth (Hop::changes): how long they take depends on
/// when they start (FORMATS.md 3, rule 1).
namespace rondo {

/// Of a link whose bandwidth may change, at an instant.
double bandwidth_at_GBps(const Link& link, double t_us);
/// What passes over such a link from one time to a later one.
double passing_bytes(const Link& link, double from_us, double until_us);

struct HopTiming {
  struct Use {
    double start_us;
    double end_us;
  };
  std::vector<Use> uses = {};  ///< per link of the hop
  double start_us = 0;
  double arrival_us = 0;  ///< at hop.dst; infinity where some bytes never pass
};

/// A transfer of `bytes` that starts at `start_us`. Where the arrival is infinite, ends are too.
HopTiming timing_from(const Topology& topology, const Hop& hop, double bytes, double start_us);

/// The transfer that starts last of those that arrive by `arrival_us`, over a hop in which no switch copies;
/// before time 0 bandwidths are those of time 0, so that there is always one. It may arrive earlier: while a
/// link is down nothing does.
HopTiming timing_until(const Topology& topology, const Hop& hop, double bytes, double arrival_us);

/// The earliest time >= `t_us` at which no link that the bytes of a transfer would begin to flow over is down
/// when it starts then; infinity where there is none.
double up_from(const Topology& topology, const Hop& hop, double t_us);

}  // namespace rondo
