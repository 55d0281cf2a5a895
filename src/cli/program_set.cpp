#include "program_set.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <tuple>

#include "rondo/catalogue/times.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/units.hpp"

namespace rondo::cli {
namespace {

using catalogue::Cell;

/// Schedules on each side of a cell that are compared where its own is left out.
constexpr std::size_t kNear = 2;

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

class SetMaker {
 public:
  SetMaker(const catalogue::Folder& folder, const catalogue::Table& table, const WriteProgram& write)
      : folder_(folder), table_(table), write_(write), times_(folder, table.series) {
    for (const Cell& cell : table.cells) {
      if (!cell.is_refused()) cells_.push_back(&cell);
    }
  }

  ProgramSet make(std::optional<std::size_t> most) {
    std::vector<std::string> allowed = writable();
    while (most && runs(allowed).size() > *most) leave_out_least(allowed);
    for (const Run& run : runs(allowed)) set_.programs.push_back({run.schedule, run.range, text_of(run)});
    set_.largest_loss = loss(allowed);
    return std::move(set_);
  }

 private:
  struct Run {
    std::string schedule;
    double first_bytes = 0;
    double last_bytes = 0;  ///< cells
    ByteRange range = {};
  };

  /// Schedules of the bins that the executor takes.
  std::vector<std::string> writable() {
    std::vector<std::string> names;
    for (const catalogue::Bin& bin : table_.bins) {
      if (!has(names, bin.schedule)) names.push_back(bin.schedule);
    }
    std::string first_refusal;
    for (const Run& run : runs(names)) {
      if (!has(names, run.schedule)) continue;
      try {
        text_of(run);
      } catch (const Error& error) {
        if (error.code() != ExitCode::unavailable) throw;
        if (first_refusal.empty()) first_refusal = error.what();
        set_.remarks.push_back(fmt::format("schedule {} is left out: {}", run.schedule, error.what()));
        std::erase(names, run.schedule);
      }
    }
    if (names.empty()) {
      throw Error(ExitCode::unavailable, fmt::format("no schedule of {} becomes a program; the first: {}",
                                                     catalogue::describe(table_.series), first_refusal));
    }
    return names;
  }

  const std::string& text_of(const Run& run) {
    const auto key = std::tuple(run.schedule, run.range.least, run.range.most);
    const auto found = texts_.find(key);
    if (found != texts_.end()) return found->second;
    return texts_[key] = write_(*folder_.schedule(run.schedule), run.range);
  }

  /// The cell's own, or else the best of the nearest cells' on both sides, as bins are found.
  std::string best_at(const std::vector<std::string>& allowed, std::size_t i) {
    if (has(allowed, cells_[i]->schedule)) return cells_[i]->schedule;
    std::string best;
    double best_us = std::numeric_limits<double>::infinity();
    const auto consider = [&](auto begin, auto end) {
      std::vector<std::string> near;
      for (auto cell = begin; cell != end && near.size() < kNear; ++cell) {
        const std::string& name = (*cell)->schedule;
        if (!has(allowed, name) || has(near, name)) continue;
        near.push_back(name);
        const double there_us = times_.finish_us(name, cells_[i]->size_bytes);
        if (!best.empty() && there_us >= best_us) continue;
        best = name;
        best_us = there_us;
      }
    };
    const auto here = cells_.begin() + static_cast<std::ptrdiff_t>(i);
    consider(std::make_reverse_iterator(here), cells_.rend());
    consider(here + 1, cells_.end());
    return best;
  }

  std::vector<Run> runs(const std::vector<std::string>& allowed) {
    std::vector<Run> found;
    const auto add = [&](const std::string& schedule, double first_bytes, double last_bytes) {
      if (found.empty() || found.back().schedule != schedule) found.push_back({schedule, first_bytes});
      found.back().last_bytes = last_bytes;
    };
    std::size_t cell = 0;
    for (std::size_t b = 0; b < table_.bins.size(); ++b) {
      const catalogue::Bin& bin = table_.bins[b];
      if (cell == cells_.size() || !bin.holds(cells_[cell]->size_bytes)) {
        // It serves sizes between two cells.
        if (b > 0 && bin.border && has(allowed, bin.schedule))
          add(bin.schedule, table_.bins[b - 1].border->above_bytes, bin.border->below_bytes);
      }
      for (; cell < cells_.size() && bin.holds(cells_[cell]->size_bytes); ++cell)
        add(best_at(allowed, cell), cells_[cell]->size_bytes, cells_[cell]->size_bytes);
    }
    for (std::size_t r = 0; r < found.size(); ++r) {
      found[r].range = {r == 0 ? 0 : found[r - 1].range.most + 1,
                        r + 1 == found.size() ? kMostBytes : border(found[r], found[r + 1]) - 1};
    }
    return found;
  }

  double loss(const std::vector<std::string>& allowed) {
    double most = 0;
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      const std::string best = best_at(allowed, i);
      if (best == cells_[i]->schedule) continue;
      most = std::max(most, times_.finish_us(best, cells_[i]->size_bytes) / cells_[i]->finish_us - 1);
    }
    return most;
  }

  void leave_out_least(std::vector<std::string>& allowed) {
    std::size_t least = 0;
    double least_loss = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < allowed.size(); ++i) {
      std::vector<std::string> rest = allowed;
      rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
      const double of_rest = loss(rest);
      if (of_rest < least_loss) {
        least_loss = of_rest;
        least = i;
      }
    }
    set_.remarks.push_back(
        fmt::format("schedule {} is left out, to have fewer programs: at most {:.2f} % later", allowed[least],
                    100 * least_loss));
    allowed.erase(allowed.begin() + static_cast<std::ptrdiff_t>(least));
  }

  /// Where the second begins: as between their bins where these are neighbours.
  std::int64_t border(const Run& smaller, const Run& larger) {
    const auto key = std::tuple(smaller.schedule, smaller.last_bytes, larger.schedule, larger.first_bytes);
    const auto known = borders_.find(key);
    if (known != borders_.end()) return known->second;
    const auto between = std::ranges::find_if(table_.bins, [&](const catalogue::Bin& bin) {
      return bin.from_bytes > smaller.last_bytes && bin.from_bytes <= larger.first_bytes;
    });
    const bool are_neighbours = between != table_.bins.end() && between->schedule == larger.schedule &&
                                std::prev(between)->schedule == smaller.schedule;
    const double from_bytes =
        are_neighbours
            ? between->from_bytes
            : times_.border(smaller.schedule, smaller.last_bytes, larger.schedule, larger.first_bytes)
                  .above_bytes;
    return borders_[key] = static_cast<std::int64_t>(std::ceil(from_bytes));
  }

  const catalogue::Folder& folder_;
  const catalogue::Table& table_;
  const WriteProgram& write_;
  catalogue::Times times_;
  std::vector<const Cell*> cells_;
  std::map<std::tuple<std::string, std::int64_t, std::int64_t>, std::string> texts_;
  std::map<std::tuple<std::string, double, std::string, double>, std::int64_t> borders_;
  ProgramSet set_;
};

}  // namespace

ProgramSet program_set(const catalogue::Folder& folder, const catalogue::Table& table,
                       std::optional<std::size_t> most, const WriteProgram& write) {
  return SetMaker(folder, table, write).make(most);
}

void check_cover(const std::vector<ByteRange>& ranges, const std::string& what) {
  std::int64_t from = 0;
  for (const ByteRange& range : ranges) {
    if (range.least != from || range.most < range.least) {
      throw Error(ExitCode::internal,
                  fmt::format("the programs of {} leave out or repeat sizes from {} bytes on", what,
                              std::min(from, range.least)));
    }
    from = range.most + 1;
  }
  if (from <= kMostBytes)
    throw Error(ExitCode::internal, fmt::format("the programs of {} end at {} bytes", what, from - 1));
}

}  // namespace rondo::cli
