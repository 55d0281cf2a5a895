#pragma once

#include <string>

#include "rondo/core/schedule.hpp"

namespace rondo::cli {

/// The figures that a person asks for first.
struct Figures {
  double finish_us = 0;
  double algorithm_bandwidth_GBps = 0;
  double lower_bound_us = 0;  ///< 0: none
  double gap = 0;             ///< finish / bound - 1; 0 without a bound
};

Figures figures_of(const ProvenSchedule& proven);

/// "finish 40237.1 us, algorithm bandwidth 24.85 GB/s, lower bound 40002.7 us, gap 0.59 %".
std::string describe(const Figures& figures);

}  // namespace rondo::cli
