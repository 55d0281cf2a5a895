#include "rondo/catalogue/build.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cell_maker.hpp"
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
};

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
      wave.push_back({middle, smaller, larger});
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

/// When cells of one size are made, one turn after another, so that later ones can be made from earlier ones.
constexpr int kTurns = 3;
int turn_of(const Series& series) {
  if (series.collective == Collective::allreduce) return 2;
  return series.collective == Collective::reduce_scatter ? 1 : 0;
}

/// What a rank tells the others of a cell.
struct Told {
  int way = 0;
  bool was_there = false;
  std::string damaged = {};
};
auto members_of(SameAs<Told> auto& told) {
  return std::tie(told.way, told.was_there, told.damaged);
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

/// Cells of one wave, of all series.
class Wave {
 public:
  Wave(const Folder& folder, const BuildTask& task, const RunContext& context, const std::vector<Step>& steps)
      : folder_(folder), task_(task), context_(context), steps_(steps) {}

  /// Sums may be made from what spreads them, and sums for several GPUs from both.
  void make(BuildSummary& summary) const {
    const bool is_refreshed = !task_.older.empty();
    for (int turn = 0; turn < (is_refreshed ? kTurns : 1); ++turn) {
      std::vector<std::size_t> cells;
      for (std::size_t i = 0; i < num_cells(); ++i) {
        if (!is_refreshed || turn_of(series(i)) == turn) cells.push_back(i);
      }
      make(cells, summary);
    }
  }
  std::size_t num_cells() const { return task_.series.size() * steps_.size(); }

 private:
  void make(const std::vector<std::size_t>& cells, BuildSummary& summary) const {
    std::vector<double> work;
    for (const std::size_t i : cells) work.push_back(work_of(series(i)));
    const auto outcomes = map_parts(context_.communicator, work,
                                    [&](std::size_t i) { return to_message(make_cell(cells[i])); });
    throw_errors(outcomes);
    for (const PartOutcome& outcome : outcomes) {
      const Told told = from_message<Told>(outcome.value);
      if (told.was_there) {
        ++summary.found;
      } else {
        ++summary.made[to_string(static_cast<Way>(told.way))];
      }
      if (!told.damaged.empty()) summary.damaged.push_back(told.damaged);
    }
  }

  const Series& series(std::size_t i) const { return task_.series[i / steps_.size()]; }

  Told make_cell(std::size_t i) const {
    throw_if_interrupted(context_);
    const Step& step = steps_[i % steps_.size()];
    const double size_bytes = task_.sizes[static_cast<std::size_t>(step.size)];
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
                  .smaller = neighbour(i, step.smaller),
                  .larger = neighbour(i, step.larger),
                  .older = older(i, size_bytes)};
    if (cell.older && turn_of(series(i)) > 0) {
      cell.spreading = other(i, size_bytes, Collective::allgather);
      if (turn_of(series(i)) > 1) cell.gathering = other(i, size_bytes, Collective::reduce_scatter);
    }
    const Cell made = catalogue::make_cell(cell, context_.interrupt);
    throw_if_interrupted(context_);
    folder_.write(series(i), made);
    told.way = static_cast<int>(made.way);
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

  /// This size of a collective among the same GPUs.
  std::optional<Cell> other(std::size_t i, double size_bytes, Collective collective) const {
    Series wanted = series(i);
    wanted.collective = collective;
    if (std::ranges::find(task_.series, wanted) == task_.series.end()) return std::nullopt;
    return folder_.made_cell(wanted, size_bytes);
  }

  std::optional<Cell> older(std::size_t i, double size_bytes) const {
    if (task_.older.empty()) return std::nullopt;
    const std::vector<Cell>& cells = task_.older[i / steps_.size()].cells;
    const auto found = std::ranges::find(cells, size_bytes, &Cell::size_bytes);
    if (found == cells.end() || found->is_refused()) return std::nullopt;
    return *found;
  }

  const Folder& folder_;
  const BuildTask& task_;
  const RunContext& context_;
  const std::vector<Step>& steps_;
};

}  // namespace

std::string BuildOptions::text() const {
  return fmt::format("tolerance={} seed={} improve-work={} concurrency={}", tolerance, solve.seed,
                     solve.improve_work, solve.concurrency);
}

BuildSummary build(const Folder& folder, const BuildTask& task, const RunContext& context) {
  BuildSummary summary;
  std::size_t done = 0;
  const std::size_t all = task.series.size() * task.sizes.size();
  for (const std::vector<Step>& steps : waves_of(static_cast<int>(task.sizes.size()))) {
    const Wave wave(folder, task, context, steps);
    wave.make(summary);
    done += wave.num_cells();
    context.tell(fmt::format("{} of {} cells", done, all));
  }
  find_bins(folder, task.series, context);
  return summary;
}

}  // namespace rondo::catalogue
