#include "rondo/pipeline/synthesize.hpp"

#include <fmt/format.h>

#include "replayed.hpp"
#include "rondo/bounds/bounds.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/stopwatch.hpp"
#include "rondo/pipeline/registry.hpp"
#include "search.hpp"
#include "synthesize_rounds.hpp"

namespace rondo {

SynthesisResult synthesize(std::shared_ptr<const Topology> topology, const Demand& demand,
                           const SolveOptions& options, const Communicator& communicator,
                           const Progress& progress, const std::atomic<bool>* interrupt,
                           const RunStore& store) {
  if (options.engine != "auto") find_engine(options.engine);
  check_reachable(*topology, demand);
  if (options.engine == "rounds") {
    return synthesize_rounds(std::move(topology), demand, options, communicator, progress, interrupt, store);
  }
  const Instance instance{std::move(topology), demand};

  const Stopwatch bounds_clock;
  const Toolbox tools = prepare_toolbox(options, communicator, progress, interrupt, store.checkpoints.get());
  const Bounds bounds = lower_bounds(instance, tools, options.symmetry);
  const LowerBound& bound = bounds.best();
  const double bounds_s = bounds_clock.seconds();
  if (communicator.is_root()) {
    progress(fmt::format("lower bound {:.6g} us ({})", bound.us, certificate_kind(bound.certificate)));
  }

  const Stopwatch search_clock;
  SynthesisResult result =
      search_best(instance, options, bounds, tools, communicator, progress, interrupt, *store.checkpoints);
  const double search_s = search_clock.seconds();

  const Stopwatch replay_clock;
  double& finish_us = result.proven.schedule.finish_us;
  if (!result.is_replayed) {
    finish_us = replayed_finish_us(result.proven.topology, result.proven.demand, result.proven.schedule.sends,
                                   "the winner");
  }
  result.gap = finish_us / bound.us - 1;
  result.remarks.insert(result.remarks.end(), bounds.remarks.begin(), bounds.remarks.end());
  result.wall_parts_s["bounds"] = bounds_s;
  result.wall_parts_s["search"] = search_s - result.wall_parts_s["improvement"];
  result.wall_parts_s["replay"] = replay_clock.seconds();
  result.wall_parts_s["checkpoints"] = store.checkpoints->seconds();
  return result;
}

}  // namespace rondo
