#include "program_set.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "rondo/catalogue/times.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/units.hpp"

namespace rondo::cli {
namespace {

using catalogue::Cell;

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
    const std::vector<Run> found = runs(allowed);
    std::int64_t from = 0;
    for (std::size_t r = 0; r < found.size(); ++r) {
      const bool is_last = r + 1 == found.size();
      const ByteRange range{from, is_last ? kMostBytes : border(found[r], found[r + 1]) - 1};
      set_.programs.push_back(
          {found[r].schedule, range, write_(*folder_.schedule(found[r].schedule), range)});
      from = range.most + 1;
    }
    set_.largest_loss = loss(allowed);
    return std::move(set_);
  }

 private:
  struct Run {
    std::string schedule;
    double first_bytes = 0;
    double last_bytes = 0;  ///< cells
  };

  /// Schedules of the bins that the executor takes.
  std::vector<std::string> writable() {
    std::vector<std::string> names;
    std::string first_refusal;
    std::vector<std::string> tried;
    for (const catalogue::Bin& bin : table_.bins) {
      if (std::ranges::find(tried, bin.schedule) != tried.end()) continue;
      tried.push_back(bin.schedule);
      try {
        write_(*folder_.schedule(bin.schedule), {0, kMostBytes});
        names.push_back(bin.schedule);
      } catch (const Error& error) {
        if (error.code() != ExitCode::unavailable) throw;
        if (first_refusal.empty()) first_refusal = error.what();
        set_.remarks.push_back(fmt::format("schedule {} is left out: {}", bin.schedule, error.what()));
      }
    }
    if (names.empty()) {
      throw Error(ExitCode::unavailable, fmt::format("no schedule of {} becomes a program; the first: {}",
                                                     catalogue::describe(table_.series), first_refusal));
    }
    return names;
  }

  const std::string& best_at(const std::vector<std::string>& allowed, double size_bytes) {
    return *std::ranges::min_element(
        allowed, {}, [&](const std::string& name) { return times_.finish_us(name, size_bytes); });
  }

  std::vector<Run> runs(const std::vector<std::string>& allowed) {
    std::vector<Run> found;
    for (const Cell* cell : cells_) {
      const std::string& best = best_at(allowed, cell->size_bytes);
      if (found.empty() || found.back().schedule != best) found.push_back({best, cell->size_bytes});
      found.back().last_bytes = cell->size_bytes;
    }
    return found;
  }

  double loss(const std::vector<std::string>& allowed) {
    double most = 0;
    for (const Cell* cell : cells_) {
      const double finish_us = times_.finish_us(best_at(allowed, cell->size_bytes), cell->size_bytes);
      most = std::max(most, finish_us / cell->finish_us - 1);
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

  /// Where the second begins.
  std::int64_t border(const Run& smaller, const Run& larger) {
    const catalogue::Border found =
        times_.border(smaller.schedule, smaller.last_bytes, larger.schedule, larger.first_bytes);
    return static_cast<std::int64_t>(std::ceil(found.above_bytes));
  }

  const catalogue::Folder& folder_;
  const catalogue::Table& table_;
  const WriteProgram& write_;
  catalogue::Times times_;
  std::vector<const Cell*> cells_;
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
