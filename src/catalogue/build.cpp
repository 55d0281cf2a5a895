#include "rondo/catalogue/build.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cell_maker.hpp"
#include "finding_bins.hpp"
#include "found_times.hpp"
#include "makers.hpp"
#include "replaying.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/version.hpp"
#include "rondo/parallel/map_parts.hpp"
#include "rondo/parallel/messages.hpp"

namespace rondo::catalogue {
namespace {

/// A size, and the nearest sizes that are made before it; -1: none.
struct Step {
  int size = 0;
  int smaller = -1;
  int larger = -1;
  int wave = 0;
};

/// After so many waves, sizes lie between some that were searched.
constexpr int kWavesAnew = 3;

/// The waves in which sizes 0 .. n - 1 are made: those of one wave depend on earlier ones alone.
std::vector<std::vector<Step>> waves_of(int n) {
  std::vector<std::vector<Step>> waves{{{n - 1}}};
  if (n == 1) return waves;
  waves.front().push_back({0});
  std::vector<std::pair<int, int>> between{{0, n - 1}};
  while (true) {
    std::vector<Step> wave;
    std::vector<std::pair<int, int>> next;
    for (const auto& [smaller, larger] : between) {
      if (larger - smaller < 2) continue;
      const int middle = (smaller + larger) / 2;
      wave.push_back({middle, smaller, larger, static_cast<int>(waves.size())});
      next.emplace_back(smaller, middle);
      next.emplace_back(middle, larger);
    }
    if (wave.empty()) return waves;
    waves.push_back(std::move(wave));
    between = std::move(next);
  }
}

/// About what a cell takes, against others of the same fabric.
double work_of(const Series& series) {
  constexpr double kSumsForAll = 4;  // halves, trees, exchanges: more engines, and no bound that ends them
  return series.collective == Collective::allreduce ? kSumsForAll : 1;
}

/// How many waves later cells of one size are made, so that sums can be made from what spreads them, and sums
/// for several GPUs from both.
constexpr int kMostTurns = 2;
int turn_of(const Series& series) {
  if (series.collective == Collective::allreduce) return kMostTurns;
  return series.collective == Collective::reduce_scatter ? 1 : 0;
}

/// A cell, by the number of its series, and its neighbours.
struct CellStep {
  std::size_t series = 0;
  Step step;
};

/// All cells of a task in the order in which they are made: those of one stage depend on earlier ones alone.
std::vector<std::vector<CellStep>> stages_of(const BuildTask& task) {
  const auto waves = waves_of(static_cast<int>(task.sizes.size()));
  std::vector<std::vector<CellStep>> stages(waves.size() + kMostTurns);
  for (std::size_t w = 0; w < waves.size(); ++w) {
    for (std::size_t i = 0; i < task.series.size(); ++i) {
      auto& stage = stages[w + static_cast<std::size_t>(turn_of(task.series[i]))];
      for (const Step& step : waves[w]) stage.push_back({i, step});
    }
  }
  return stages;
}

/// What a rank tells the others of a cell.
struct Told {
  int way = 0;
  bool was_there = false;
  std::string damaged = {};
  std::vector<std::string> replayed = {};  ///< schedules, and what they take
  std::vector<double> finish_us = {};
};
auto members_of(SameAs<Told> auto& told) {
  return std::tie(told.way, told.was_there, told.damaged, told.replayed, told.finish_us);
}

/// Collective. Throws the first part's error, but a stop before all others.
void throw_errors(const std::vector<PartOutcome>& outcomes) {
  const Error* first = nullptr;
  for (const PartOutcome& outcome : outcomes) {
    if (!outcome.error) continue;
    if (outcome.error->code() == ExitCode::stopped) throw *outcome.error;
    if (first == nullptr) first = &*outcome.error;
  }
  if (first != nullptr) throw *first;
}

void throw_if_interrupted(const RunContext& context) {
  if (!context.interrupt_came()) return;
  throw Error(ExitCode::stopped,
              "stopped; all cells that were finished are kept, and the same command goes on");
}

/// Cells that do not depend on each other, dealt over the ranks.
class Stage {
 public:
  Stage(const Folder& folder, const BuildTask& task, const RunContext& context,
        const std::vector<CellStep>& cells, const std::vector<NamedFabric>& sketches, Replays& replays)
      : folder_(folder),
        task_(task),
        context_(context),
        cells_(cells),
        sketches_(sketches),
        replays_(replays),
        wave_of_(task.sizes.size()) {
    for (const auto& wave : waves_of(static_cast<int>(task.sizes.size()))) {
      for (const Step& step : wave) wave_of_[static_cast<std::size_t>(step.size)] = step.wave;
    }
  }

  /// Collective.
  void make(BuildSummary& summary, std::vector<KnownTimes>& known) const {
    std::vector<double> work;
    for (std::size_t i = 0; i < cells_.size(); ++i) work.push_back(work_of(series(i)));
    const auto outcomes =
        map_parts(context_.communicator, work, [&](std::size_t i) { return to_message(make_cell(i)); });
    throw_errors(outcomes);
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      const Told told = from_message<Told>(outcomes[i].value);
      for (std::size_t k = 0; k < told.replayed.size(); ++k)
        known[cells_[i].series][{told.replayed[k], size_bytes(i)}] = told.finish_us[k];
      if (told.was_there) {
        ++summary.found;
      } else {
        ++summary.made[to_string(static_cast<Way>(told.way))];
      }
      if (!told.damaged.empty()) summary.damaged.push_back(told.damaged);
    }
  }

 private:
  const Series& series(std::size_t i) const { return task_.series[cells_[i].series]; }
  double size_bytes(std::size_t i) const {
    return task_.sizes[static_cast<std::size_t>(cells_[i].step.size)];
  }

  Told make_cell(std::size_t i) const {
    throw_if_interrupted(context_);
    const Step& step = cells_[i].step;
    const double size_bytes = this->size_bytes(i);
    Told told;
    if (const auto there = cell_there(series(i), size_bytes, told)) {
      told.way = static_cast<int>(there->way);
      return told;
    }
    folder_.remove_bins(series(i));
    CellTask cell{.folder = folder_,
                  .topology = task_.topology,
                  .series = series(i),
                  .size_bytes = size_bytes,
                  .options = task_.options,
                  .sketches = sketches_,
                  .replays = replays_,
                  .smaller = neighbour(i, step.smaller),
                  .larger = neighbour(i, step.larger),
                  .older = older(i, size_bytes),
                  .is_between = step.wave >= kWavesAnew,
                  .smaller_of_engine = of_engine(i, -1),
                  .larger_of_engine = of_engine(i, 1)};
    add_parts(i, size_bytes, cell);
    const MadeCell made = catalogue::make_cell(cell, context_.interrupt);
    throw_if_interrupted(context_);
    folder_.write(series(i), made.cell);
    told.way = static_cast<int>(made.cell.way);
    for (const auto& [name, finish_us] : made.finish_us) {
      told.replayed.push_back(name);
      told.finish_us.push_back(finish_us);
      keep_time(folder_, series(i), context_.communicator.rank(), name, size_bytes, finish_us);
    }
    return told;
  }

  /// Nothing where it is to be made, again if it is damaged.
  std::optional<Cell> cell_there(const Series& of, double size_bytes, Told& told) const {
    if (task_.anew) return std::nullopt;
    std::optional<Cell> there;
    try {
      there = folder_.made_cell(of, size_bytes);
    } catch (const Error& error) {
      if (error.code() != ExitCode::bad_data) throw;
      told.damaged = error.what();
      return std::nullopt;
    }
    if (!there) return std::nullopt;
    const std::string asked = task_.options.text();
    if (there->settings != asked || there->producer != producer()) {
      throw Error(ExitCode::bad_data,
                  fmt::format("{} was made by {} with {}, not by {} with {}; give the same options, another "
                              "folder, or --force",
                              folder_.cell_path(of, size_bytes).string(), there->producer, there->settings,
                              producer(), asked));
    }
    told.was_there = true;
    return there;
  }

  std::optional<Cell> neighbour(std::size_t i, int size) const {
    if (size < 0) return std::nullopt;
    return folder_.made_cell(series(i), task_.sizes[static_cast<std::size_t>(size)]);
  }

  /// For sums for several GPUs: of the sizes that were made in earlier waves the nearest on one side.
  std::optional<Cell> of_engine(std::size_t i, int towards) const {
    const Step& step = cells_[i].step;
    if (task_.older.empty() || turn_of(series(i)) < kMostTurns || step.wave < kWavesAnew) return std::nullopt;
    for (int size = step.size + towards; size >= 0 && size < static_cast<int>(task_.sizes.size());
         size += towards) {
      if (wave_of_[static_cast<std::size_t>(size)] >= step.wave) continue;
      std::optional<Cell> there = neighbour(i, size);
      if (there && !there->is_refused() && maker_of(*there, 1)) return there;
    }
    return std::nullopt;
  }

  /// Without an older cell, sums for several GPUs are made of halves in any case: of those that are there, if
  /// they were solved for this size as they would be again.
  void add_parts(std::size_t i, double size_bytes, CellTask& cell) const {
    const int turn = turn_of(series(i));
    if (turn == 0 || (!cell.older && turn < kMostTurns)) return;
    auto spreading = other(i, size_bytes, Collective::allgather);
    auto gathering = turn == kMostTurns ? other(i, size_bytes, Collective::reduce_scatter) : std::nullopt;
    const auto is_solved = [](const std::optional<Cell>& part) { return part && part->way == Way::solved; };
    if (!cell.older && (!is_solved(spreading) || !is_solved(gathering))) return;
    cell.spreading = std::move(spreading);
    cell.gathering = std::move(gathering);
  }

  /// This size of a collective among the same GPUs.
  std::optional<Cell> other(std::size_t i, double size_bytes, Collective collective) const {
    Series wanted = series(i);
    wanted.collective = collective;
    if (std::ranges::find(task_.series, wanted) == task_.series.end()) return std::nullopt;
    return folder_.made_cell(wanted, size_bytes);
  }

  std::optional<Cell> older(std::size_t i, double size_bytes) const {
    if (task_.older.empty()) return std::nullopt;
    const std::vector<Cell>& cells = task_.older[cells_[i].series].cells;
    const auto found = std::ranges::find(cells, size_bytes, &Cell::size_bytes);
    if (found == cells.end() || found->is_refused()) return std::nullopt;
    return *found;
  }

  const Folder& folder_;
  const BuildTask& task_;
  const RunContext& context_;
  const std::vector<CellStep>& cells_;
  const std::vector<NamedFabric>& sketches_;
  Replays& replays_;
  std::vector<int> wave_of_;  ///< by size
};

}  // namespace

std::string BuildOptions::text() const {
  const std::string text = fmt::format("tolerance={} seed={} improve-work={} concurrency={}", tolerance,
                                       solve.seed, solve.improve_work, solve.concurrency);
  return sketches > 0 ? text + fmt::format(" sketches={}", sketches) : text;
}

BuildSummary build(const Folder& folder, const BuildTask& task, const RunContext& context) {
  BuildSummary summary;
  std::vector<KnownTimes> known(task.series.size());
  std::vector<NamedFabric> sketches;
  if (task.options.sketches > 0) sketches = sketched_fabrics(*task.topology);
  const auto replays = std::make_shared<Replays>(folder);  // of this rank
  std::size_t done = 0;
  const std::size_t all = task.series.size() * task.sizes.size();
  for (const std::vector<CellStep>& cells : stages_of(task)) {
    Stage(folder, task, context, cells, sketches, *replays).make(summary, known);
    done += cells.size();
    context.tell(fmt::format("{} of {} cells", done, all));
  }
  find_bins(folder, task.series, known, replays, context);
  return summary;
}

}  // namespace rondo::catalogue
