#pragma once

#include <cstdint>
#include <vector>

#include "rondo/core/schedule.hpp"

/// What a schedule does to its topology, in figures.
namespace rondo::pictures {

struct LinkLoad {
  double bytes = 0;
  double busy_us = 0;  ///< transmitting at its full bandwidth, or longer at a share of it
  std::size_t sends = 0;
};

/// One a link.
std::vector<LinkLoad> link_loads(const ProvenSchedule& proven);

/// Share of its link's bandwidth that each send takes.
std::vector<double> link_shares(const ProvenSchedule& proven);

/// Part of a send in a drawing of its link's load: while it lasts, it lies on what else the link carries.
struct StackedPart {
  int send = -1;
  double from_us = 0;
  double to_us = 0;
  double low = 0;   ///< share of the bandwidth below it
  double high = 0;  ///< and with it
};

/// All sends, by link and then by time; what is alone on its link is one part.
std::vector<StackedPart> stacked(const ProvenSchedule& proven);

/// What is known of the sums of a schedule.
struct SumFacts {
  std::vector<int> sources;  ///< per send: of how many the sum is that it carries; 1 for what is only copied
  std::vector<char> adds;    ///< per send: it is part of a transfer that is added where it ends
  std::vector<NodeId> complete;  ///< per chunk: the GPU that has the whole sum first, else the origin
};
SumFacts sum_facts(const ProvenSchedule& proven);

/// Where the time axis ends: the finish time, or the last arrival where that is later.
double axis_end_us(const ProvenSchedule& proven);

/// Share of their bandwidth that the links of each row carry in each of `bins` equal times up to `end_us`,
/// averaged over them: rows x bins. `row_of_link` holds -1 for links without a row.
std::vector<float> busy_shares(const ProvenSchedule& proven, const std::vector<int>& row_of_link,
                               std::size_t rows, std::size_t bins, double end_us);

}  // namespace rondo::pictures
