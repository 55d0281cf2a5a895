#include "cell_maker.hpp"

#include <algorithm>

#include "replaying.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/stopwatch.hpp"
#include "rondo/core/version.hpp"
#include "rondo/io/schedule_hdf5.hpp"
#include "rondo/pipeline/synthesize.hpp"

namespace rondo::catalogue {
namespace {

/// What this size's cell is made from and of.
class CellMaker {
 public:
  CellMaker(const CellTask& task, const std::atomic<bool>* interrupt)
      : task_(task),
        interrupt_(interrupt),
        demand_(demand_of(task.series, task.size_bytes, task.topology->num_gpus())) {
    cell_.size_bytes = task.size_bytes;
    cell_.settings = task.options.text();
    cell_.producer = producer();
  }

  Cell make() {
    const Stopwatch clock;
    const std::optional<Replayed> smaller = replayed(task_.smaller);
    const std::optional<Replayed> larger = replayed(task_.larger);
    const std::optional<Replayed> older = replayed(task_.older);
    for (const auto* candidate : {&smaller, &larger, &older}) {
      if (*candidate && (*candidate)->schedule) take_over(**candidate);
    }
    if (!is_good_enough(older)) solve(older);
    cell_.loss_of_smaller = loss_of(smaller);
    cell_.loss_of_larger = loss_of(larger);
    cell_.wall_s = clock.seconds();
    return std::move(cell_);
  }

 private:
  std::optional<Replayed> replayed(const std::optional<Cell>& kept) const {
    if (!kept || kept->is_refused()) return std::nullopt;
    return replayed_at(kept->schedule, *task_.folder.schedule(kept->schedule), *task_.topology,
                       task_.size_bytes);
  }

  void take_over(const Replayed& candidate) {
    if (!cell_.is_refused() && !is_earlier(candidate.finish_us(), cell_.finish_us)) return;
    cell_.way = Way::replayed;
    cell_.schedule = candidate.name;
    cell_.finish_us = candidate.finish_us();
    cell_.digest = schedule_digest(candidate.schedule->demand, candidate.schedule->schedule);
    cell_.engine = "replayed";
  }

  /// Whether what was taken over may stay.
  bool is_good_enough(const std::optional<Replayed>& older) {
    if (cell_.is_refused()) return false;
    cell_.bound = bound_at(task_.topology, demand_);
    const double tolerance = task_.options.tolerance;
    if (cell_.gap() <= tolerance) return true;
    // On its own figures it was as far from the bound.
    if (older && older->schedule && 1 + cell_.gap() <= (1 + task_.older->gap()) * (1 + tolerance))
      return true;
    return is_settled();
  }

  /// Whether one schedule is near the best at both neighbouring sizes, and in between no farther from the
  /// bound than there: it serves here as well.
  bool is_settled() const {
    if (!task_.smaller || !task_.larger) return false;
    if (task_.smaller->is_refused() || task_.larger->is_refused()) return false;
    const double tolerance = task_.options.tolerance;
    const double worst = std::max(task_.smaller->gap(), task_.larger->gap());
    if (1 + cell_.gap() > (1 + tolerance) * (1 + worst)) return false;
    const auto within = [&](const std::optional<double>& loss) { return loss && *loss <= tolerance; };
    // The one that was made later has the other one's loss.
    return task_.smaller->schedule == task_.larger->schedule || within(task_.smaller->loss_of_larger) ||
           within(task_.larger->loss_of_smaller);
  }

  std::optional<double> loss_of(const std::optional<Replayed>& candidate) const {
    if (!candidate || !candidate->schedule || cell_.is_refused()) return std::nullopt;
    return candidate->finish_us() / cell_.finish_us - 1;
  }

  /// With an older schedule, adapts the best of what is there, until it is as near to the bound as the older
  /// one was to its own.
  void solve(const std::optional<Replayed>& older) {
    const double tolerance = task_.options.tolerance;
    Problem problem{task_.topology, demand_, task_.options.solve};
    if (older) {
      problem.options.from = cell_.is_refused() ? older->name : cell_.schedule;
      problem.start = task_.folder.schedule(problem.options.from);
      problem.options.enough_gap = std::max(tolerance, (1 + task_.older->gap()) * (1 + tolerance) - 1);
      if (try_solving(problem, Way::adapted)) return;
      problem.start = nullptr;
      problem.options.from.clear();
    }
    problem.options.enough_gap = tolerance;
    try_solving(problem, Way::solved);
  }

  /// Whether there is a schedule now; why not, else.
  bool try_solving(const Problem& problem, Way way) {
    const auto alone = make_local_communicator();
    const RunContext context{*alone, [](const std::string&) {}, interrupt_};
    try {
      const SynthesisResult result = synthesize(problem, context);
      if (context.interrupt_came()) return true;
      take(result, problem, way);
      return true;
    } catch (const Error& error) {
      const bool is_refusal = error.code() == ExitCode::unavailable || error.code() == ExitCode::bad_data;
      if (!is_refusal) throw;
      if (cell_.is_refused()) cell_.refusal = error.what();
      return false;
    }
  }

  void take(const SynthesisResult& result, const Problem& problem, Way way) {
    cell_.bound = result.proven.lower_bound;
    const Schedule& schedule = result.proven.schedule;
    if (!cell_.is_refused() && !is_earlier(schedule.finish_us, cell_.finish_us)) return;
    cell_.way = way;
    cell_.schedule = task_.folder.add_schedule(result.proven);
    cell_.finish_us = schedule.finish_us;
    cell_.digest = schedule_digest(result.proven.demand, schedule);
    cell_.engine = result.engine;
    cell_.seed = result.seed;
    cell_.made_from = problem.options.from;
    cell_.refusal.clear();
  }

  const CellTask& task_;
  const std::atomic<bool>* interrupt_;
  Demand demand_;
  Cell cell_;
};

}  // namespace

Cell make_cell(const CellTask& task, const std::atomic<bool>* interrupt) {
  return CellMaker(task, interrupt).make();
}

}  // namespace rondo::catalogue
