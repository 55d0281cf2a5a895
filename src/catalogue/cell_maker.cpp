#include "cell_maker.hpp"

#include <algorithm>

#include "replaying.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/stopwatch.hpp"
#include "rondo/core/version.hpp"
#include "rondo/io/schedule_hdf5.hpp"
#include "rondo/pipeline/halves.hpp"
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
    if (!is_good_enough()) {
      if (older) make_from_others();
      if (!is_as_good_as(older)) solve(older);
    }
    if (made_) keep_made();
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
  bool is_good_enough() {
    if (cell_.is_refused()) return false;
    cell_.bound = bound_at(task_.topology, demand_);
    return cell_.gap() <= task_.options.tolerance || is_settled();
  }

  /// Whether the older schedule was as far from the bound on its own figures.
  bool is_as_good_as(const std::optional<Replayed>& older) const {
    if (cell_.is_refused() || !older || !older->schedule) return false;
    return 1 + cell_.gap() <= (1 + task_.older->gap()) * (1 + task_.options.tolerance);
  }

  /// Sums for one GPU each from what spreads, backwards; for several, from both in two halves.
  void make_from_others() {
    const std::optional<Replayed> spreading = replayed(task_.spreading);
    const std::optional<Replayed> gathering = replayed(task_.gathering);
    const auto there = [](const std::optional<Replayed>& other) {
      return other && other->schedule ? &*other->schedule : nullptr;
    };
    if (there(spreading) == nullptr && there(gathering) == nullptr) return;
    const bool is_whole = demand_.kind() == DemandKind::all_reduction;
    std::optional<ProvenSchedule> made =
        is_whole ? in_halves(demand_, there(gathering), there(spreading)) : backwards(*there(spreading));
    if (!made) return;
    if (is_whole) halves_ = std::make_shared<const ProvenSchedule>(*made);
    if (!cell_.is_refused() && !is_earlier(made->schedule.finish_us, cell_.finish_us)) return;
    if (!cell_.bound) cell_.bound = bound_at(task_.topology, demand_);
    made->lower_bound = cell_.bound;
    cell_.way = Way::adapted;
    cell_.finish_us = made->schedule.finish_us;
    cell_.engine = is_whole ? "halves/kept" : "backwards/kept";
    cell_.made_from = (is_whole && gathering ? *gathering : *spreading).name;
    made_ = std::move(made);
  }

  std::optional<ProvenSchedule> backwards(const ProvenSchedule& spreading) const {
    const std::size_t chunks = spreading.demand.num_chunks() / demand_.num_chunks();
    return sums_backwards(spreading, demand_.with_chunks(static_cast<int>(chunks)));
  }

  void keep_made() {
    cell_.schedule = task_.folder.add_schedule(*made_);
    cell_.digest = schedule_digest(made_->demand, made_->schedule);
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
      problem.halves = halves_;
      problem.options.from = cell_.is_refused() || made_ ? older->name : cell_.schedule;
      problem.start = task_.folder.schedule(problem.options.from);
      problem.options.enough_gap = std::max(tolerance, (1 + task_.older->gap()) * (1 + tolerance) - 1);
      if (try_solving(problem, Way::adapted)) return;
      problem.start = nullptr;
      problem.halves = nullptr;
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
    made_.reset();
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
  std::optional<ProvenSchedule> made_ = std::nullopt;  ///< from others, of no file as yet
  std::shared_ptr<const ProvenSchedule> halves_ = nullptr;
};

}  // namespace

Cell make_cell(const CellTask& task, const std::atomic<bool>* interrupt) {
  return CellMaker(task, interrupt).make();
}

}  // namespace rondo::catalogue
