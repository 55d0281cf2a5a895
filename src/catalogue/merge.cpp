#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "replaying.hpp"
#include "rondo/catalogue/repairs.hpp"
#include "rondo/catalogue/tuned.hpp"
#include "rondo/catalogue/upkeep.hpp"
#include "rondo/core/error.hpp"
#include "rondo/io/files.hpp"

namespace rondo::catalogue {
namespace {

struct Coming {
  Series series;
  Cell cell;
};

/// Cells as they were made: bins and what neighbours gave are found anew.
std::vector<Coming> cells_of(const Folder& folder) {
  std::vector<Coming> all;
  for (const Series& series : folder.all_series()) {
    for (const Cell& cell : folder.table(series).cells) {
      auto made = folder.made_cell(series, cell.size_bytes);
      if (made) all.push_back({series, *std::move(made)});
    }
  }
  return all;
}

/// What was tuned on a fabric that goes means nothing any more.
void remove_tuning(const Folder& folder, const Series& series) {
  for (const TunedSize& tuned : read_tuned(folder, series))
    remove_file(folder.tuning_path(series, tuned.size_bytes));
  remove_file(folder.tuned_path(series));
}

/// Sizes that `folder` has itself stay as they are: its calls are more recent to it.
void merge_tuned(const Folder& folder, const Folder& from, const Series& series) {
  const std::vector<TunedSize> here = read_tuned(folder, series);
  for (TunedSize& tuned : read_tuned(from, series)) {
    if (std::ranges::find(here, tuned.size_bytes, &TunedSize::size_bytes) == here.end())
      write_tuned(folder, series, std::move(tuned));
  }
}

bool is_same(const Cell& a, const Cell& b) {
  return a.way == b.way && a.schedule == b.schedule && a.digest == b.digest;
}

}  // namespace

Merged merge(const Folder& folder, const Folder& from, SameCell same) {
  Merged merged;
  std::vector<Coming> chosen;
  for (Coming& coming : cells_of(from)) {
    const auto here = folder.made_cell(coming.series, coming.cell.size_bytes);
    if (!here) {
      ++merged.cells;
    } else if (is_same(*here, coming.cell)) {
      ++merged.equal;
      continue;
    } else if (same == SameCell::refuse) {
      throw Error(
          ExitCode::bad_data,
          fmt::format("{} and {} are the same cell with different schedules ({} us, {} us); --same best "
                      "keeps the one that ends earlier",
                      folder.cell_path(coming.series, here->size_bytes).string(),
                      from.cell_path(coming.series, here->size_bytes).string(), here->finish_us,
                      coming.cell.finish_us));
    } else {
      const bool is_better = !coming.cell.is_refused() &&
                             (here->is_refused() || is_earlier(coming.cell.finish_us, here->finish_us));
      ++(is_better ? merged.better : merged.worse);
      if (!is_better) continue;
    }
    chosen.push_back(std::move(coming));
  }
  std::set<std::string> fabrics;
  for (const Coming& coming : chosen) {
    if (fabrics.insert(coming.series.fabric).second) folder.add_fabric(*from.fabric(coming.series.fabric));
    if (!coming.cell.is_refused()) folder.add_schedule(*from.schedule(coming.cell.schedule));
    folder.remove_bins(coming.series);
    folder.write(coming.series, coming.cell);
  }
  for (const Series& series : from.all_series()) merge_tuned(folder, from, series);
  merge_repairs(folder, from);
  return merged;
}

Pruned prune(const Folder& folder, const std::vector<std::string>& keep) {
  Pruned pruned;
  std::set<std::string> used;
  for (const Series& series : folder.all_series()) {
    const Table table = folder.table(series);
    if (!keep.empty() && std::ranges::find(keep, series.fabric) == keep.end()) {
      pruned.cells += table.cells.size();
      folder.remove(series);
      remove_tuning(folder, series);
      continue;
    }
    for (const Cell& cell : table.cells) {
      // From here on the cell is what its neighbours made of it: its own schedule may go.
      const auto made = folder.made_cell(series, cell.size_bytes);
      if (made && made->schedule != cell.schedule) folder.write(series, cell);
      used.insert(cell.schedule);
    }
  }
  for (const std::string& name : folder.fabrics()) {
    if (!keep.empty() && std::ranges::find(keep, name) == keep.end()) folder.remove_fabric(name);
  }
  prune_repairs(folder);
  for (const std::string& name : folder.schedules()) {
    if (used.contains(name)) continue;
    const std::filesystem::path path = folder.schedule_path(name);
    pruned.bytes += std::filesystem::file_size(path);
    ++pruned.schedules;
    remove_file(path);
  }
  return pruned;
}

}  // namespace rondo::catalogue
