#include "synthesize_rounds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "replayed.hpp"
#include "rondo/bounds/bounds.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/stopwatch.hpp"
#include "rondo/core/version.hpp"
#include "rondo/parallel/metered_communicator.hpp"
#include "rondo/pipeline/registry.hpp"

namespace rondo {
namespace {

constexpr int kChunksWithoutPlan = 4;
constexpr double kWorthOfFewerChunks = 0.01;  ///< of the finish time

/// What the rounds begin with.
struct Beginning {
  int chunks = 1;
  LowerBound bound;
  std::optional<Schedule> plan = std::nullopt;
};

Beginning begin(const std::shared_ptr<const Topology>& topology, const Demand& demand,
                const SolveOptions& options, const Communicator& communicator, const Progress& progress,
                const std::atomic<bool>* interrupt, const RunStore& store, const Toolbox& tools) {
  if (store.finished.empty() && options.rounds.mip_start) {
    SolveOptions list = options;
    list.engine = "list";
    list.improve_work = 0;  // that is what the models are for
    const auto search = [&](const char* prefix) {
      store.checkpoints->set_prefix(prefix);
      SynthesisResult found = synthesize(topology, demand, list, communicator, progress, interrupt,
                                         {.checkpoints = store.checkpoints});
      store.checkpoints->set_prefix("");
      return found;
    };
    SynthesisResult listed = search("plan-");
    // A round's model is the larger the more chunks there are: as few as lose little.
    for (const auto& [chunks, trade] : listed.by_chunks) {
      if (trade.finish_us > listed.proven.schedule.finish_us * (1 + kWorthOfFewerChunks)) continue;
      if (chunks >= listed.proven.demand.chunks_per_contribution()) break;
      list.chunks = chunks;
      listed = search("plan-of-fewer-chunks-");
      break;
    }
    return {listed.proven.demand.chunks_per_contribution(), *listed.proven.lower_bound,
            std::move(listed.proven.schedule)};
  }
  const int chunks = options.chunks > 0 ? options.chunks : kChunksWithoutPlan;
  return {store.finished.empty() ? chunks : static_cast<int>(store.finished.front().chunks),
          lower_bounds({topology, demand}, tools, options.symmetry).best()};
}

std::string describe(const RoundRecord& record, double total) {
  const double unmet = static_cast<double>(record.state.unmet.size());
  std::int64_t changed = 0;
  for (const RoundPart& part : record.parts) changed += part.transfers_changed;
  return fmt::format("round {}: {:.1f}% of the demand sent, {} parts, {} transfers changed by the models{}",
                     record.round, 100 * (1 - unmet / total), record.parts.size(), changed,
                     std::isnan(record.finish_after_us)
                         ? ""
                         : fmt::format(", incumbent {:.6g} us, gap {:.3f}%", record.finish_after_us,
                                       100 * (record.finish_after_us / record.bound_us - 1)));
}

}  // namespace

void check_options(const Topology& topology, const Demand& demand, const SolveOptions& options) {
  if (options.engine != "rounds") return;
  check_rounds(demand);
  find_decomposition(options.decompose).decompose(topology, demand, options.parts, options.seed);
}

SynthesisResult synthesize_rounds(std::shared_ptr<const Topology> topology, const Demand& demand,
                                  const SolveOptions& options, const Communicator& communicator,
                                  const Progress& progress, const std::atomic<bool>* interrupt,
                                  const RunStore& store) {
  const Toolbox tools = make_toolbox();
  const Stopwatch plan_clock;
  const Beginning beginning =
      begin(topology, demand, options, communicator, progress, interrupt, store, tools);
  const double plan_s = plan_clock.seconds();

  RoundsProblem problem{
      {topology, demand.with_chunks(beginning.chunks)}, options.rounds, {}, {}, beginning.bound.us};
  problem.engine.seed = options.seed;
  problem.engine.epochs = options.epochs;
  problem.engine.limits.max_nodes = options.max_nodes;
  problem.engine.limits.interrupt = interrupt;
  if (options.time_limit_s)
    problem.engine.limits.time_limit_s = std::max(0.0, *options.time_limit_s - plan_s);
  problem.engine.stop_at_us = beginning.bound.us * (1 + options.gap.value_or(1e-6));
  const Demand& split = problem.instance.demand;
  problem.decomposition =
      find_decomposition(options.decompose).decompose(*topology, split, options.parts, options.seed);

  SynthesisResult result{{*topology, split, {}, beginning.bound, producer()}};
  double store_s = 0;
  auto summary = [](RoundRecord record) {
    record.sends.clear();
    record.plan.reset();
    record.state = {record.state.time_us};
    return record;
  };
  for (const RoundRecord& record : store.finished) result.rounds.push_back(summary(record));
  const FinishRound finish_round = [&](const RoundRecord& record) {
    const Stopwatch clock;
    store.finish_round(record);
    store_s += clock.seconds();
    if (communicator.is_root()) progress(describe(record, split.num_deliveries()));
    result.rounds.push_back(summary(record));
  };
  RoundsNotes notes;
  const MeteredCommunicator metered(communicator);
  const Stopwatch rounds_clock;
  result.proven.schedule =
      solve_rounds(problem, tools, metered, store.finished, beginning.plan, finish_round, notes);
  const double rounds_s = rounds_clock.seconds() - store_s;

  const Stopwatch replay_clock;
  const double finish_us =
      replayed_finish_us(*topology, split, result.proven.schedule.sends, "engine rounds");
  result.proven.schedule.finish_us = finish_us;
  result.remarks = notes.remarks;
  result.limits_hit = notes.limits_hit;
  result.gap = finish_us / beginning.bound.us - 1;
  result.engine = "rounds/" + options.decompose;
  result.seed = options.seed;
  result.metrics["rounds"] = static_cast<double>(result.rounds.size());
  result.metrics["exchange_s"] = communicator.max(metered.exchange().seconds);
  result.metrics["exchange_bytes"] = metered.exchange().bytes;
  result.metrics["rounds_resumed"] = static_cast<double>(store.finished.size());
  if (beginning.plan) result.metrics["start_finish_us"] = beginning.plan->finish_us;
  const double checkpoints_s = store.checkpoints->seconds();
  result.wall_parts_s = {{"plan", plan_s - checkpoints_s},
                         {"checkpoints", checkpoints_s},
                         {"rounds", rounds_s},
                         {"round_files", store_s},
                         {"replay", replay_clock.seconds()}};
  return result;
}

}  // namespace rondo
