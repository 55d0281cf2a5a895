#include <algorithm>

#include "replaying.hpp"
#include "rondo/catalogue/build.hpp"
#include "rondo/catalogue/times.hpp"
#include "rondo/core/error.hpp"
#include "rondo/io/schedule_hdf5.hpp"
#include "rondo/parallel/map_parts.hpp"

namespace rondo::catalogue {
namespace {

/// Other schedules on each side whose time a cell is compared with.
constexpr std::size_t kNear = 2;

/// The bins of one series, on this rank alone.
class BinFinder {
 public:
  BinFinder(const Folder& folder, const Series& series)
      : folder_(folder), table_(folder.table(series)), topology_(folder.fabric(series.fabric)) {
    std::erase_if(table_.cells, [&](const Cell& cell) {
      if (cell.is_refused()) refused_.push_back(cell);
      return cell.is_refused();
    });
  }

  Table find() {
    // Borders need each schedule to be the better one at its own cell; taking over moves on until it is.
    while (take_over()) {
    }
    merge();
    table_.cells.insert(table_.cells.end(), refused_.begin(), refused_.end());
    std::ranges::sort(table_.cells, {}, &Cell::size_bytes);
    return std::move(table_);
  }

 private:
  /// Other schedules of the nearest cells on both sides.
  std::vector<std::string> near(std::size_t i) const {
    std::vector<std::string> names;
    const auto add = [&](std::size_t j, std::size_t most) {
      const std::string& name = table_.cells[j].schedule;
      if (names.size() < most && name != table_.cells[i].schedule &&
          std::ranges::find(names, name) == names.end())
        names.push_back(name);
    };
    for (std::size_t j = i; j-- > 0;) add(j, kNear);
    const std::size_t smaller = names.size();
    for (std::size_t j = i + 1; j < table_.cells.size(); ++j) add(j, smaller + kNear);
    return names;
  }

  /// Whether some cell got a better schedule from a neighbour.
  bool take_over() {
    bool any = false;
    for (std::size_t i = 0; i < table_.cells.size(); ++i) {
      Cell& cell = table_.cells[i];
      for (const std::string& name : near(i)) {
        if (!is_earlier(times_.finish_us(name, cell.size_bytes), cell.finish_us)) continue;
        const Replayed there = replayed_at(name, *folder_.schedule(name), *topology_, cell.size_bytes);
        cell.way = Way::replayed;
        cell.schedule = name;
        cell.finish_us = there.finish_us();
        cell.digest = schedule_digest(there.schedule->demand, there.schedule->schedule);
        any = true;
      }
    }
    return any;
  }

  void merge() {
    table_.bins.clear();
    for (std::size_t i = 0; i < table_.cells.size(); ++i) {
      const Cell& cell = table_.cells[i];
      if (i == 0) {
        table_.bins.push_back({.schedule = cell.schedule});
      } else if (cell.schedule != table_.bins.back().schedule) {
        const Cell& before = table_.cells[i - 1];
        const Border border =
            times_.border(before.schedule, before.size_bytes, cell.schedule, cell.size_bytes);
        table_.bins.back().to_bytes = border.above_bytes;
        table_.bins.back().border = border;
        table_.bins.push_back({.from_bytes = border.above_bytes, .schedule = cell.schedule});
      }
    }
  }

  const Folder& folder_;
  Table table_;
  std::shared_ptr<const Topology> topology_;
  std::vector<Cell> refused_;
  Times times_{folder_, table_.series};
};

/// Damaged ones are removed: they follow from the cells.
bool has_whole_bins(const Folder& folder, const Series& series) {
  if (!folder.has_bins(series)) return false;
  try {
    folder.table(series);
    return true;
  } catch (const Error& error) {
    if (error.code() != ExitCode::bad_data) throw;
    folder.remove_bins(series);
    return false;
  }
}

}  // namespace

void find_bins(const Folder& folder, const std::vector<Series>& series, const RunContext& context) {
  const std::vector<double> work(series.size(), 1);
  const auto outcomes = map_parts(context.communicator, work, [&](std::size_t i) {
    if (context.interrupt_came()) {
      throw Error(ExitCode::stopped,
                  "stopped; all cells that were finished are kept, and the same command goes on");
    }
    if (!has_whole_bins(folder, series[i])) folder.write_bins(BinFinder(folder, series[i]).find());
    return Bytes{};
  });
  for (const PartOutcome& outcome : outcomes) {
    if (outcome.error) throw *outcome.error;
  }
}

}  // namespace rondo::catalogue
