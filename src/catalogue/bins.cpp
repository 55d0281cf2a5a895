#include <algorithm>
#include <deque>
#include <filesystem>
#include <iterator>
#include <map>
#include <system_error>
#include <tuple>
#include <utility>

#include "finding_bins.hpp"
#include "found_times.hpp"
#include "known_points.hpp"
#include "replaying.hpp"
#include "rondo/catalogue/build.hpp"
#include "rondo/catalogue/times.hpp"
#include "rondo/core/error.hpp"
#include "rondo/io/schedule_hdf5.hpp"
#include "rondo/parallel/map_parts.hpp"
#include "rondo/parallel/messages.hpp"

namespace rondo::catalogue {

auto members_of(SameAs<Crossing> auto& crossing) {
  return std::tie(crossing.border, crossing.schedule);
}

/// What a series has already: its bins, or times that an earlier attempt has found.
struct There {
  bool is_whole = false;
  std::vector<std::string> schedules = {};
  std::vector<double> sizes = {};
  std::vector<double> finish_us = {};
};
auto members_of(SameAs<There> auto& there) {
  return std::tie(there.is_whole, there.schedules, there.sizes, there.finish_us);
}

namespace {

/// Other schedules on each side whose time a cell is compared with.
constexpr std::size_t kNear = 2;

/// A schedule at the size of a cell.
struct Probe {
  std::size_t cell = 0;
  std::string schedule = {};
};

/// The bins of one series.
class BinFinder {
 public:
  BinFinder(const Folder& folder, const Series& series, const KnownTimes& known,
            std::shared_ptr<Replays> replays)
      : table_(folder.table(series)),
        topology_(folder.fabric(series.fabric)),
        replays_(std::move(replays)),
        times_(folder, series, replays_) {
    std::erase_if(table_.cells, [&](const Cell& cell) {
      if (cell.is_refused()) refused_.push_back(cell);
      return cell.is_refused();
    });
    for (const Cell& cell : table_.cells) {
      made_.push_back(cell.schedule);
      known_[cell.schedule].add(cell.size_bytes, cell.finish_us);
      times_.remember(cell.schedule, cell.size_bytes, cell.finish_us);
    }
    for (const auto& [at, finish_us] : known) times_.remember(at.first, at.second, finish_us);
  }

  const std::vector<Cell>& cells() const { return table_.cells; }
  Times& times() { return times_; }

  /// What every cell is compared with at first, and is not known.
  std::vector<Probe> probes() const {
    std::vector<Probe> all;
    for (std::size_t i = 0; i < table_.cells.size(); ++i) {
      for (std::string& name : near(i)) {
        const double size_bytes = table_.cells[i].size_bytes;
        if (!times_.is_known(name, size_bytes) && !times_.is_known(guessed(name), size_bytes))
          all.push_back({i, std::move(name)});
      }
    }
    return all;
  }

  /// Borders need each schedule to be the better one at its own cell; taking over moves on until it is.
  void take_over() {
    for (bool any = true; any;) {
      any = false;
      for (std::size_t i = 0; i < table_.cells.size(); ++i) {
        Cell& cell = table_.cells[i];
        for (const std::string& name : near(i)) {
          if (!times_.is_known(name, cell.size_bytes) &&
              !is_earlier(times_.guess_us(name, cell.size_bytes), cell.finish_us))
            continue;
          const double finish_us = times_.finish_us(name, cell.size_bytes);
          if (!is_earlier(finish_us, cell.finish_us)) continue;
          cell.way = Way::replayed;
          cell.schedule = name;
          cell.finish_us = finish_us;
          any = true;
        }
      }
    }
  }

  /// Cells with the schedule of another one.
  std::vector<std::size_t> taken_over() const {
    std::vector<std::size_t> all;
    for (std::size_t i = 0; i < made_.size(); ++i) {
      if (made_[i] != table_.cells[i].schedule) all.push_back(i);
    }
    return all;
  }
  std::string digest_at(std::size_t i) const {
    const Cell& cell = table_.cells[i];
    const Replayed there = replays_->at(cell.schedule, table_.series.fabric, topology_, cell.size_bytes);
    return schedule_digest(there.schedule->demand, there.schedule->schedule);
  }
  void set_digest(std::size_t i, std::string digest) { table_.cells[i].digest = std::move(digest); }

  /// Cells whose schedule is another one than that of the cell before.
  std::vector<std::size_t> steps() const {
    std::vector<std::size_t> all;
    for (std::size_t i = 1; i < table_.cells.size(); ++i) {
      if (table_.cells[i].schedule != table_.cells[i - 1].schedule) all.push_back(i);
    }
    return all;
  }
  std::vector<Crossing> crossings_before(std::size_t i) {
    const Cell& before = table_.cells[i - 1];
    const Cell& cell = table_.cells[i];
    std::vector<std::string> others = nearest(i - 1);
    std::ranges::move(nearest(i), std::back_inserter(others));
    return times_.crossings(before.schedule, before.size_bytes, cell.schedule, cell.size_bytes, others);
  }

  /// With what lies before each of steps().
  Table table(const std::vector<std::vector<Crossing>>& crossings) {
    table_.bins.clear();
    if (!table_.cells.empty()) table_.bins.push_back({.schedule = table_.cells.front().schedule});
    for (const std::vector<Crossing>& between : crossings) {
      for (const Crossing& crossing : between) {
        table_.bins.back().to_bytes = crossing.border.above_bytes;
        table_.bins.back().border = crossing.border;
        table_.bins.push_back({.from_bytes = crossing.border.above_bytes, .schedule = crossing.schedule});
      }
    }
    table_.cells.insert(table_.cells.end(), refused_.begin(), refused_.end());
    std::ranges::sort(table_.cells, {}, &Cell::size_bytes);
    return std::move(table_);
  }

 private:
  /// Other schedules of the nearest cells on both sides.
  std::vector<std::string> nearest(std::size_t i) const {
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

  /// Of these, those that are not later here by what is known; borders need the two next to it in any case.
  std::vector<std::string> near(std::size_t i) const {
    std::vector<std::string> names = nearest(i);
    std::erase_if(names, [&](const std::string& name) { return !is_next_to(i, name) && is_later(i, name); });
    return names;
  }

  bool is_next_to(std::size_t i, const std::string& name) const {
    return (i > 0 && table_.cells[i - 1].schedule == name) ||
           (i + 1 < table_.cells.size() && table_.cells[i + 1].schedule == name);
  }

  bool is_later(std::size_t i, const std::string& name) const {
    const Cell& cell = table_.cells[i];
    const auto known = known_.find(name);
    return known != known_.end() && known->second.least_us(cell.size_bytes) > cell.finish_us;
  }

  Table table_;
  std::shared_ptr<const Topology> topology_;
  std::vector<Cell> refused_;
  std::vector<std::string> made_;             ///< schedules of cells, as they were made
  std::map<std::string, KnownPoints> known_;  ///< of those
  std::shared_ptr<Replays> replays_;
  Times times_;
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

/// Work on all series at once, dealt over the ranks.
class BinsOfAll {
 public:
  BinsOfAll(const Folder& folder, std::shared_ptr<Replays> replays, const RunContext& context)
      : folder_(folder), replays_(std::move(replays)), context_(context) {}

  void find(const std::vector<Series>& series, const std::vector<KnownTimes>& known) {
    const auto there = dealt<There>(std::vector<double>(series.size(), 1), [&](std::size_t i) {
      There told{.is_whole = has_whole_bins(folder_, series[i])};
      if (told.is_whole) {
        remove_found_times(folder_, series[i]);
        return told;
      }
      for (const auto& [at, finish_us] : found_times(folder_, series[i])) {
        told.schedules.push_back(at.first);
        told.sizes.push_back(at.second);
        told.finish_us.push_back(finish_us);
      }
      return told;
    });
    for (std::size_t i = 0; i < series.size(); ++i) {
      if (there[i].is_whole) continue;
      BinFinder& finder = finders_.emplace_back(folder_, series[i], known[i], replays_);
      for (std::size_t k = 0; k < there[i].schedules.size(); ++k)
        finder.times().remember(there[i].schedules[k], there[i].sizes[k], there[i].finish_us[k]);
      finder.times().tell_found(
          [this, of = series[i]](const std::string& schedule, double size_bytes, double finish_us) {
            keep_time(folder_, of, context_.communicator.rank(), schedule, size_bytes, finish_us);
          });
    }
    take_over();
    const std::vector<std::vector<std::vector<Crossing>>> crossings = find_crossings();
    dealt<int>(std::vector<double>(finders_.size(), 1), [&](std::size_t i) {
      const Table table = finders_[i].table(crossings[i]);
      folder_.write_bins(table);
      remove_found_times(folder_, table.series);
      return 0;
    });
  }

 private:
  /// An item of a series, and about what it takes.
  struct Job {
    std::size_t finder = 0;
    std::size_t item = 0;
  };

  /// Collective. The results of all parts on every rank.
  template <class Result, class Work>
  std::vector<Result> dealt(const std::vector<double>& work, const Work& part) const {
    const auto outcomes = map_parts(context_.communicator, work, [&](std::size_t i) {
      if (context_.interrupt_came()) {
        throw Error(ExitCode::stopped,
                    "stopped; all cells that were finished are kept, and the same command goes on");
      }
      return to_message(part(i));
    });
    std::vector<Result> results;
    for (const PartOutcome& outcome : outcomes) {
      if (outcome.error) throw *outcome.error;
      results.push_back(from_message<Result>(outcome.value));
    }
    return results;
  }

  /// A replay takes as long as the schedule has sends; its file's size says about how many.
  double work_of(const std::string& schedule) const {
    std::error_code is_gone;  // which its replay will say
    const auto bytes = std::filesystem::file_size(folder_.schedule_path(schedule), is_gone);
    return is_gone ? 1 : static_cast<double>(bytes);
  }

  void take_over() {
    std::vector<std::pair<std::size_t, Probe>> probes;
    std::vector<double> work;
    for (std::size_t f = 0; f < finders_.size(); ++f) {
      for (Probe& probe : finders_[f].probes()) {
        work.push_back(work_of(probe.schedule));
        probes.emplace_back(f, std::move(probe));
      }
    }
    const auto at = [&](std::size_t i) { return finders_[probes[i].first].cells()[probes[i].second.cell]; };
    const auto times = dealt<double>(work, [&](std::size_t i) {
      return finders_[probes[i].first].times().guess_us(probes[i].second.schedule, at(i).size_bytes);
    });
    for (std::size_t i = 0; i < probes.size(); ++i)
      finders_[probes[i].first].times().remember(guessed(probes[i].second.schedule), at(i).size_bytes,
                                                 times[i]);

    std::vector<Job> jobs;
    work.clear();
    for (std::size_t f = 0; f < finders_.size(); ++f) {
      finders_[f].take_over();
      for (const std::size_t i : finders_[f].taken_over()) {
        jobs.push_back({f, i});
        work.push_back(work_of(finders_[f].cells()[i].schedule));
      }
    }
    const auto digests = dealt<std::string>(
        work, [&](std::size_t j) { return finders_[jobs[j].finder].digest_at(jobs[j].item); });
    for (std::size_t j = 0; j < jobs.size(); ++j)
      finders_[jobs[j].finder].set_digest(jobs[j].item, digests[j]);
  }

  /// By series and step.
  std::vector<std::vector<std::vector<Crossing>>> find_crossings() {
    std::vector<Job> jobs;
    std::vector<double> work;
    for (std::size_t f = 0; f < finders_.size(); ++f) {
      const std::vector<Cell>& cells = finders_[f].cells();
      for (const std::size_t i : finders_[f].steps()) {
        jobs.push_back({f, i});
        work.push_back(work_of(cells[i - 1].schedule) + work_of(cells[i].schedule));
      }
    }
    auto found = dealt<std::vector<Crossing>>(
        work, [&](std::size_t j) { return finders_[jobs[j].finder].crossings_before(jobs[j].item); });
    std::vector<std::vector<std::vector<Crossing>>> crossings(finders_.size());
    for (std::size_t j = 0; j < jobs.size(); ++j) crossings[jobs[j].finder].push_back(std::move(found[j]));
    return crossings;
  }

  const Folder& folder_;
  std::shared_ptr<Replays> replays_;
  const RunContext& context_;
  std::deque<BinFinder> finders_;
};

}  // namespace

void find_bins(const Folder& folder, const std::vector<Series>& series, const std::vector<KnownTimes>& known,
               std::shared_ptr<Replays> replays, const RunContext& context) {
  BinsOfAll(folder, std::move(replays), context).find(series, known);
}

void find_bins(const Folder& folder, const std::vector<Series>& series, const RunContext& context) {
  find_bins(folder, series, std::vector<KnownTimes>(series.size()), std::make_shared<Replays>(folder),
            context);
}

}  // namespace rondo::catalogue
