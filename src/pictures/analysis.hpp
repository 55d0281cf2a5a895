#pragma once

#include <cstdint>
#include <vector>

#include "rondo/core/schedule.hpp"

/// What a schedule does to its topology, in figures.
namespace rondo::pictures {

struct LinkLoad {
  double bytes = 0;
  double busy_us = 0;  ///< transmitting
  std::size_t sends = 0;
};

/// One a link.
std::vector<LinkLoad> link_loads(const ProvenSchedule& proven);

/// Where the time axis ends: the finish time, or the last arrival where that is later.
double axis_end_us(const ProvenSchedule& proven);

/// Share of each of `bins` equal times up to `end_us` that the links of each row transmit, averaged over
/// them: rows x bins. `row_of_link` holds -1 for links without a row.
std::vector<float> busy_shares(const ProvenSchedule& proven, const std::vector<int>& row_of_link,
                               std::size_t rows, std::size_t bins, double end_us);

}  // namespace rondo::pictures
