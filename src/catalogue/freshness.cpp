#include <algorithm>
#include <tuple>

#include "replaying.hpp"
#include "rondo/catalogue/upkeep.hpp"
#include "rondo/parallel/map_parts.hpp"
#include "rondo/parallel/messages.hpp"

namespace rondo::catalogue {
namespace {

struct ToldCheck {
  int verdict = 0;
  double finish_us = 0;
  double bound_us = 0;
  std::string reason = {};
};
auto members_of(SameAs<ToldCheck> auto& told) {
  return std::tie(told.verdict, told.finish_us, told.bound_us, told.reason);
}

Verdict verdict_of(const Checked& cell, double tolerance) {
  return cell.gap <= greatest_kept_gap(cell.gap_before, tolerance) ? Verdict::kept : Verdict::stale;
}

}  // namespace

double greatest_kept_gap(double before, double tolerance) {
  return (1 + tolerance) * (1 + std::max(0.0, before)) - 1;
}

const char* to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::kept:
      return "kept";
    case Verdict::stale:
      return "to be solved again";
    default:
      return "broken";
  }
}

std::vector<Checked> check(const Folder& folder, const std::string& fingerprint,
                           const std::shared_ptr<const Topology>& topology, double tolerance,
                           const RunContext& context) {
  std::vector<Checked> all;
  std::vector<std::string> schedules;
  for (const Series& series : folder.all_series()) {
    if (series.fabric != fingerprint) continue;
    for (const Cell& cell : folder.table(series).cells) {
      if (cell.is_refused()) continue;
      all.push_back({.series = series,
                     .size_bytes = cell.size_bytes,
                     .finish_before_us = cell.finish_us,
                     .gap_before = cell.gap()});
      schedules.push_back(cell.schedule);
    }
  }
  const auto outcomes =
      map_parts(context.communicator, std::vector<double>(all.size(), 1), [&](std::size_t i) {
        const Checked& cell = all[i];
        const Replayed there =
            replayed_at(schedules[i], *folder.schedule(schedules[i]), *topology, cell.size_bytes);
        const LowerBound bound =
            bounds_at(topology, demand_of(cell.series, cell.size_bytes, topology->num_gpus())).best();
        return to_message(ToldCheck{0, there.finish_us(), bound.us, there.why_not});
      });
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (outcomes[i].error) throw *outcomes[i].error;
    const auto told = from_message<ToldCheck>(outcomes[i].value);
    Checked& cell = all[i];
    cell.finish_us = told.finish_us;
    cell.bound_us = told.bound_us;
    cell.gap = told.finish_us / told.bound_us - 1;
    cell.reason = told.reason;
    cell.verdict = told.reason.empty() ? verdict_of(cell, tolerance) : Verdict::broken;
  }
  return all;
}

}  // namespace rondo::catalogue
