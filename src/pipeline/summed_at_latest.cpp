#include "summed_at_latest.hpp"

#include <algorithm>
#include <utility>

#include "rondo/core/interleaving.hpp"
#include "rondo/core/late_sums.hpp"
#include "rondo/pipeline/halves.hpp"
#include "tenants.hpp"

namespace rondo {

std::optional<SynthesisResult> summed_at_latest(const Problem& problem, const Demand& late,
                                                const RunContext& context) {
  const GpuId latest = latest_sources(late).front().first;
  const auto halves = halves_at(problem.demand, {latest});
  if (!halves) return std::nullopt;
  const auto solved = [&](const char* name, const Demand& demand, int chunks) {
    const Checkpoints::Prefix names(context.checkpoints(), name);
    Problem half{problem.topology, demand, problem.options};
    half.options.chunks = chunks;
    return synthesize_as_one(half, context);
  };
  const SynthesisResult spread = solved("spreading-", halves->spreading, problem.options.chunks);
  const int chunks = spread.proven.demand.chunks_per_contribution();
  SynthesisResult found = solved("gathering-", halves->gathering, chunks);
  const Topology& topology = *problem.topology;
  const Schedule both = one_after_the_other(topology, problem.demand.with_chunks(chunks),
                                            found.proven.schedule.sends, spread.proven, "sums at the latest");
  std::vector<double> keys;
  for (const Send& send : both.sends) keys.push_back(send.start_us);
  found.proven.demand = late.with_chunks(chunks);
  found.proven.schedule =
      interleaved({topology, both.sends}, topology, found.proven.demand, keys, problem.options.concurrency);
  found.engine = "latest/" + found.engine + "+" + spread.engine;
  found.limits_hit.insert(found.limits_hit.end(), spread.limits_hit.begin(), spread.limits_hit.end());
  return found;
}

}  // namespace rondo
