#include <algorithm>
#include <cmath>
#include <map>

#include "replaying.hpp"
#include "rondo/catalogue/build.hpp"
#include "rondo/core/error.hpp"
#include "rondo/io/schedule_hdf5.hpp"
#include "rondo/parallel/map_parts.hpp"

namespace rondo::catalogue {
namespace {

/// Other schedules on each side whose time a cell is compared with.
constexpr std::size_t kNear = 2;
/// Borders are found to this ratio, or to the byte.
constexpr double kBorderRatio = 1 + 1.0 / 256;

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
  double finish_of(const std::string& name, double size_bytes) {
    const auto key = std::pair(name, size_bytes);
    if (const auto found = finish_.find(key); found != finish_.end()) return found->second;
    const double finish_us = replayed_at(name, *folder_.schedule(name), *topology_, size_bytes).finish_us();
    finish_[key] = finish_us;
    return finish_us;
  }

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
        if (!is_earlier(finish_of(name, cell.size_bytes), cell.finish_us)) continue;
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

  /// The largest size found where the smaller cell's schedule is no later, and the least where the larger
  /// one's is.
  Border border_between(const Cell& smaller, const Cell& larger) {
    double below = smaller.size_bytes;
    double above = larger.size_bytes;
    while (above - below > 1 && above / below > kBorderRatio) {
      const double middle = std::floor(std::sqrt(below * above));
      const double size_bytes =
          std::clamp(middle, std::floor(below) + 1, std::max(std::ceil(above) - 1, below));
      if (size_bytes <= below || size_bytes >= above) break;
      (finish_of(smaller.schedule, size_bytes) <= finish_of(larger.schedule, size_bytes) ? below : above) =
          size_bytes;
    }
    const auto other = [&](const std::string& name, double size_bytes, double not_less_us) {
      const double finish_us = finish_of(name, size_bytes);
      // What does not work there at all is later than anything; rounding decides nothing.
      return std::isfinite(finish_us) ? std::max(finish_us, not_less_us) : 1e300;
    };
    Border border{.below_bytes = below, .above_bytes = above};
    border.below_us = finish_of(smaller.schedule, below);
    border.below_other_us = other(larger.schedule, below, border.below_us);
    border.above_us = finish_of(larger.schedule, above);
    border.above_other_us = other(smaller.schedule, above, border.above_us);
    return border;
  }

  void merge() {
    table_.bins.clear();
    for (std::size_t i = 0; i < table_.cells.size(); ++i) {
      const Cell& cell = table_.cells[i];
      if (i == 0) {
        table_.bins.push_back({.schedule = cell.schedule});
      } else if (cell.schedule != table_.bins.back().schedule) {
        const Border border = border_between(table_.cells[i - 1], cell);
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
  std::map<std::pair<std::string, double>, double> finish_;
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
