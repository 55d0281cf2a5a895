#include "cell_maker.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "makers.hpp"
#include "rondo/catalogue/upkeep.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/stopwatch.hpp"
#include "rondo/core/version.hpp"
#include "rondo/io/schedule_hdf5.hpp"
#include "rondo/pipeline/halves.hpp"
#include "rondo/pipeline/kept_schedule.hpp"
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

  MadeCell make() {
    const Stopwatch clock;
    const Replayed* const smaller = replayed(task_.smaller);
    const Replayed* const larger = replayed(task_.larger);
    const Replayed* const older = replayed(task_.older);
    for (const auto* cell : {&task_.smaller, &task_.larger, &task_.older}) {
      const Replayed* const candidate = replayed(*cell);
      if (candidate != nullptr && candidate->schedule) take_over(*candidate, **cell);
    }
    if (!is_good_enough()) {
      make_from_others();
      if (!serves_as_before(older) && !solve_as_around(older)) solve(older);
      if (task_.options.sketches > 0) try_sketches();
    }
    if (made_) keep_made();
    cell_.loss_of_smaller = loss_of(smaller);
    cell_.loss_of_larger = loss_of(larger);
    cell_.wall_s = clock.seconds();
    MadeCell made{std::move(cell_)};
    for (const auto& [name, here] : replayed_) made.finish_us[name] = here.finish_us();
    return made;
  }

 private:
  /// Null where there is no such cell, or none with a schedule. Cells often share one.
  const Replayed* replayed(const std::optional<Cell>& kept) {
    if (!kept || kept->is_refused()) return nullptr;
    const auto [at, is_new] = replayed_.try_emplace(kept->schedule);
    if (is_new)
      at->second = task_.replays.at(kept->schedule, task_.series.fabric, task_.topology, task_.size_bytes);
    return &at->second;
  }

  void take_over(const Replayed& candidate, const Cell& its) {
    if (!cell_.is_refused() && !is_earlier(candidate.finish_us(), cell_.finish_us)) return;
    cell_.way = Way::replayed;
    cell_.schedule = candidate.name;
    cell_.finish_us = candidate.finish_us();
    cell_.digest = schedule_digest(candidate.schedule->demand, candidate.schedule->schedule);
    cell_.engine = its.engine;
    cell_.seed = its.seed;
  }

  /// Whether what was taken over may stay.
  bool is_good_enough() {
    if (cell_.is_refused()) return false;
    if (is_near_by_a_neighbour()) return true;
    if (known_bound_ && bounds_may_wait()) {
      cell_.bound = *known_bound_;
      return cell_.gap() <= task_.options.tolerance;
    }
    cell_.bound = bounds().best();
    return cell_.gap() <= task_.options.tolerance || is_settled();
  }

  /// What proves a neighbour's bound, or the older one, often proves one here that is as near; finding the
  /// best takes longer.
  bool is_near_by_a_neighbour() {
    double least_gap = 0;
    for (const auto* neighbour : {&task_.smaller, &task_.larger, &task_.older}) {
      if (!*neighbour || (*neighbour)->is_refused()) continue;
      least_gap = cell_.bound ? std::min(least_gap, (*neighbour)->gap()) : (*neighbour)->gap();
      const auto here =
          bound_by((*neighbour)->bound->certificate, (*neighbour)->size_bytes, *task_.topology, demand_);
      if (here && (!cell_.bound || here->us > cell_.bound->us)) cell_.bound = here;
    }
    if (cell_.bound) known_bound_ = std::make_shared<const LowerBound>(*cell_.bound);
    constexpr double kAsNear = 1e-3;
    if (cell_.bound && cell_.gap() <= std::min(task_.options.tolerance, least_gap + kAsNear)) return true;
    cell_.bound.reset();
    return false;
  }

  /// Whether a neighbour's bound may do even if another one is nearer: prices of transfers to one GPU each
  /// take longer than what becomes of the older schedule, which often is near by what was proven before.
  bool bounds_may_wait() const {
    if (!task_.older || !demand_.is_unicast()) return false;
    try {
      return is_adapted_first(problem_from(cell_.schedule));
    } catch (const Error& error) {
      if (!is_refusal(error)) throw;
      return false;
    }
  }

  /// That ends a search: the older schedule's on its own figures, if that is more than the tolerance.
  double enough_gap() const {
    return std::max(task_.options.tolerance, task_.older ? task_.older->gap() : 0.0);
  }

  /// What is there already may be farther by the tolerance, as the catalogue's check has it.
  bool serves_as_before(const Replayed* older) const {
    if (cell_.is_refused() || older == nullptr || !older->schedule) return false;
    return cell_.gap() <= greatest_kept_gap(task_.older->gap(), task_.options.tolerance);
  }

  /// Sums for one GPU each from what spreads, backwards; for several, from both in two halves.
  void make_from_others() {
    const Replayed* const spreading = replayed(task_.spreading);
    const Replayed* const gathering = replayed(task_.gathering);
    const auto there = [](const Replayed* other) {
      return other != nullptr && other->schedule ? &*other->schedule : nullptr;
    };
    if (there(spreading) == nullptr && there(gathering) == nullptr) return;
    const bool is_whole = demand_.kind() == DemandKind::all_reduction;
    std::optional<ProvenSchedule> made =
        is_whole ? in_halves(demand_, there(gathering), there(spreading)) : backwards(*there(spreading));
    if (!made) return;
    if (is_whole) halves_ = std::make_shared<const ProvenSchedule>(*made);
    if (!cell_.is_refused() && !is_earlier(made->schedule.finish_us, cell_.finish_us)) return;
    if (!cell_.bound) cell_.bound = bounds().best();
    made->lower_bound = cell_.bound;
    cell_.way = Way::adapted;
    cell_.finish_us = made->schedule.finish_us;
    cell_.engine = is_whole ? "halves/kept" : "backwards/kept";
    cell_.made_from = (is_whole && gathering != nullptr ? gathering : spreading)->name;
    made_ = std::move(made);
  }

  std::optional<ProvenSchedule> backwards(const ProvenSchedule& spreading) const {
    return sums_backwards(spreading, demand_.with_chunks(chunks_of(spreading)));
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

  std::optional<double> loss_of(const Replayed* candidate) const {
    if (candidate == nullptr || !candidate->schedule || cell_.is_refused()) return std::nullopt;
    return candidate->finish_us() / cell_.finish_us - 1;
  }

  /// With an older schedule, adapts the best of what is there; sums for several GPUs, whose transfers take no
  /// other paths, are no earlier so than their replay was.
  void solve(const Replayed* older) {
    const bool is_whole = demand_.kind() == DemandKind::all_reduction;
    if (older != nullptr && !is_whole &&
        try_solving(problem_from(cell_.is_refused() || made_ ? older->name : cell_.schedule), Way::adapted))
      return;
    Problem problem = this->problem();
    problem.halves = halves_;
    try_solving(problem, Way::solved);
  }

  /// Sums for several GPUs on other figures than before, between sizes that were searched: by what made the
  /// schedules there, which most engines are far from. Whether that will do.
  bool solve_as_around(const Replayed* older) {
    if (older == nullptr || !task_.is_between || demand_.kind() != DemandKind::all_reduction) return false;
    for (const Maker& maker :
         makers_between(maker_of(task_.smaller_of_engine), maker_of(task_.larger_of_engine))) {
      Problem problem = this->problem();
      problem.options.engine = maker.engine;
      problem.options.policy = maker.policy;
      problem.options.seed = maker.seed;
      problem.options.chunks = maker.chunks;
      problem.options.enough_gap = std::numeric_limits<double>::max();  // other seeds are not tried
      try_solving(problem, Way::solved);
      if (interrupted()) return true;
    }
    return is_as_near_as_around();
  }

  /// As the nearest sizes on both sides are from their bounds, in the mean.
  bool is_as_near_as_around() const {
    if (cell_.is_refused() || task_.smaller->is_refused() || task_.larger->is_refused()) return false;
    return 1 + cell_.gap() <= std::sqrt((1 + task_.smaller->gap()) * (1 + task_.larger->gap()));
  }

  std::optional<Maker> maker_of(const std::optional<Cell>& cell) const {
    return cell ? catalogue::maker_of(*cell, chunks_of(*task_.folder.schedule(cell->schedule)))
                : std::nullopt;
  }
  /// Of a contribution.
  int chunks_of(const ProvenSchedule& kept) const {
    return static_cast<int>(kept.demand.num_chunks() / demand_.num_chunks());
  }

  Problem problem() const {
    Problem problem{task_.topology, demand_, task_.options.solve};
    problem.options.enough_gap = enough_gap();
    problem.bounds = bounds_;
    return problem;
  }
  /// To adapt a schedule of the folder.
  Problem problem_from(const std::string& schedule) const {
    Problem problem = this->problem();
    problem.known_bound = known_bound_;
    problem.options.from = schedule;
    problem.start = task_.folder.schedule(schedule);
    return problem;
  }

  /// The sketches that could still end earlier, by their lower bounds.
  void try_sketches() {
    if (cell_.is_refused() || cell_.gap() <= task_.options.tolerance) return;
    std::vector<std::pair<double, const NamedFabric*>> promising;
    for (const NamedFabric& sketch : task_.sketches) {
      if (interrupted()) return;
      const auto bound_us = bound_over(sketch, demand_);
      if (bound_us && is_earlier(*bound_us, cell_.finish_us)) promising.emplace_back(*bound_us, &sketch);
    }
    std::ranges::stable_sort(promising, {}, &std::pair<double, const NamedFabric*>::first);
    if (promising.size() > static_cast<std::size_t>(task_.options.sketches))
      promising.resize(static_cast<std::size_t>(task_.options.sketches));
    SolveOptions options = task_.options.solve;
    options.enough_gap = task_.options.tolerance;
    for (const auto& [bound_us, sketch] : promising) {
      if (!is_earlier(bound_us, cell_.finish_us)) return;
      std::optional<SketchedSolution> found =
          solve_over(*sketch, *task_.topology, demand_, options, interrupt_);
      if (interrupted()) return;
      if (found && is_earlier(found->proven.schedule.finish_us, cell_.finish_us))
        take(std::move(*found), *sketch);
    }
  }

  void take(SketchedSolution found, const NamedFabric& sketch) {
    made_ = std::move(found.proven);
    made_->lower_bound = cell_.bound;
    cell_.way = Way::solved;
    cell_.finish_us = made_->schedule.finish_us;
    cell_.engine = std::move(found.engine);
    cell_.seed = found.seed;
    cell_.made_from.clear();
    cell_.sketch = sketch.name;
  }

  bool interrupted() const { return interrupt_ != nullptr && interrupt_->load(); }

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
      if (!is_refusal(error)) throw;
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

  /// Derived where something has to be judged, once.
  const Bounds& bounds() {
    if (!bounds_) bounds_ = std::make_shared<const Bounds>(bounds_at(task_.topology, demand_));
    return *bounds_;
  }

  const CellTask& task_;
  const std::atomic<bool>* interrupt_;
  Demand demand_;
  Cell cell_;
  std::map<std::string, Replayed> replayed_;           ///< by the name of their file
  std::optional<ProvenSchedule> made_ = std::nullopt;  ///< from others, of no file as yet
  std::shared_ptr<const ProvenSchedule> halves_ = nullptr;
  std::shared_ptr<const Bounds> bounds_ = nullptr;
  std::shared_ptr<const LowerBound> known_bound_ =
      nullptr;  ///< by what proves a neighbour's, or the older one
};

}  // namespace

MadeCell make_cell(const CellTask& task, const std::atomic<bool>* interrupt) {
  return CellMaker(task, interrupt).make();
}

}  // namespace rondo::catalogue
