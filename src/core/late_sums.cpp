#include "rondo/core/late_sums.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "rondo/core/error.hpp"

namespace rondo {
namespace {

bool is_late(const Contribution& part) {
  return part.reduce &&
         (part.ready_us != 0 || std::ranges::any_of(part.source_ready_us, [](double us) { return us != 0; }));
}

/// Whose data for whom, which tells contributions apart.
using Ends = std::tuple<bool, std::vector<GpuId>, std::vector<GpuId>, int>;
Ends ends_of(const Contribution& part) {
  const auto sources = part.all_sources();
  return {part.reduce, {sources.begin(), sources.end()}, part.destinations, part.tenant};
}

}  // namespace

bool has_late_sums(const Demand& demand) {
  return std::ranges::any_of(demand.contributions(), is_late);
}

Demand without_late_sums(const Demand& demand) {
  std::vector<Contribution> parts = demand.contributions();
  for (Contribution& part : parts) {
    if (!part.reduce) continue;
    part.ready_us = 0;
    part.source_ready_us.clear();
  }
  return Demand(demand.collective(), demand.size_bytes(), demand.num_gpus(), std::move(parts),
                demand.chunks_per_contribution(), demand.shape());
}

Demand with_late_sums(const Demand& on_time, const Demand& late) {
  std::map<Ends, const Contribution*> times;
  for (const Contribution& part : late.contributions()) {
    const Contribution* known = times.try_emplace(ends_of(part), &part).first->second;
    if (part.ready_us == known->ready_us && part.source_ready_us == known->source_ready_us) continue;
    if (!part.reduce) continue;
    throw Error(ExitCode::unavailable,
                "two sums of the same GPUs for the same ones have different ready times, which engines of "
                "sums do not tell apart; give them one");
  }
  std::vector<Contribution> parts = on_time.contributions();
  for (Contribution& part : parts) {
    if (!part.reduce) continue;
    const Contribution& with_times = *times.at(ends_of(part));
    part.ready_us = with_times.ready_us;
    part.source_ready_us = with_times.source_ready_us;
  }
  return Demand(Collective::custom, late.size_bytes(), on_time.num_gpus(), std::move(parts),
                on_time.chunks_per_contribution(), late.shape());
}

std::vector<std::pair<GpuId, double>> latest_sources(const Demand& demand) {
  std::map<GpuId, double> latest;
  for (const Contribution& part : demand.contributions()) {
    if (!part.reduce) continue;
    const auto sources = part.all_sources();
    for (std::size_t s = 0; s < sources.size(); ++s) {
      double& us = latest[sources[s]];
      us = std::max(us, part.ready_us_of(s));
    }
  }
  std::vector<std::pair<GpuId, double>> result;
  for (const auto& [gpu, us] : latest) {
    if (us > 0) result.emplace_back(gpu, us);
  }
  std::ranges::stable_sort(result, std::ranges::greater{}, &std::pair<GpuId, double>::second);
  return result;
}

}  // namespace rondo
