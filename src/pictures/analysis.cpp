#include "analysis.hpp"

#include <algorithm>

namespace rondo::pictures {

std::vector<LinkLoad> link_loads(const ProvenSchedule& proven) {
  std::vector<LinkLoad> loads(proven.topology.num_links());
  for (const Send& send : proven.schedule.sends) {
    LinkLoad& load = loads[send.link.index()];
    load.bytes += proven.demand.bytes(send.chunk);
    load.busy_us += send.end_us - send.start_us;
    ++load.sends;
  }
  return loads;
}

double axis_end_us(const ProvenSchedule& proven) {
  double end = proven.schedule.finish_us;
  for (const Send& send : proven.schedule.sends) end = std::max(end, send.arrival_us);
  return end;
}

std::vector<float> busy_shares(const ProvenSchedule& proven, const std::vector<int>& row_of_link,
                               std::size_t rows, std::size_t bins, double end_us) {
  std::vector<double> links(rows, 0);
  for (const int row : row_of_link) {
    if (row >= 0) links[static_cast<std::size_t>(row)] += 1;
  }
  std::vector<double> busy(rows * bins, 0);
  const double width = end_us / static_cast<double>(bins);
  for (const Send& send : proven.schedule.sends) {
    const int row = row_of_link[send.link.index()];
    if (row < 0) continue;
    double* bin = &busy[static_cast<std::size_t>(row) * bins];
    auto b = std::min(bins - 1, static_cast<std::size_t>(send.start_us / width));
    for (; b < bins && static_cast<double>(b) * width < send.end_us; ++b) {
      const double from = std::max(send.start_us, static_cast<double>(b) * width);
      const double to = std::min(send.end_us, static_cast<double>(b + 1) * width);
      bin[b] += std::max(0.0, to - from);
    }
  }
  std::vector<float> shares(busy.size());
  for (std::size_t i = 0; i < busy.size(); ++i) {
    shares[i] = static_cast<float>(std::min(1.0, busy[i] / (width * std::max(1.0, links[i / bins]))));
  }
  return shares;
}

}  // namespace rondo::pictures
