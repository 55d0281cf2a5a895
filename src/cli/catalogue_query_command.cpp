#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "catalogue_options.hpp"
#include "command.hpp"
#include "fabrics.hpp"
#include "figures.hpp"
#include "rondo/catalogue/repairs.hpp"
#include "rondo/catalogue/times.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/make_set.hpp"
#include "rondo/core/units.hpp"
#include "rondo/core/verify.hpp"
#include "rondo/io/schedule_files.hpp"
#include "rondo/io/schedule_hdf5.hpp"
#include "rondo/parallel/communicator.hpp"
#include "rondo/pipeline/bound.hpp"
#include "table.hpp"

namespace rondo::cli {
namespace {

using catalogue::Cell;
using catalogue::Folder;
using catalogue::Series;
using catalogue::Table;

std::vector<OptionGroup> list_groups() {
  return {{"Input", {catalogue_option()}},
          {"What to show", {{"cells", "", "", "all cells, not only a line a series"}}}};
}

std::vector<OptionGroup> series_groups() {
  return {{"Input", {catalogue_option()}}, {"Series", series_options()}, fabric_of_catalogue()};
}

std::string why_no_failure(const Settings& settings) {
  return settings.has("failed") ? "" : "nothing fails; give --failed NODE:NODE, or leave it out";
}

std::vector<OptionGroup> lookup_groups() {
  std::vector<OptionGroup> groups = series_groups();
  groups.push_back({"Size", {{"size", "SIZE", "", "any size, as of rondo solve"}}});
  groups.push_back(
      {"Failure",
       {{"at", "US", "", "when links fail, from the begin of the schedule", why_no_failure},
        {"failed", "NODE:NODE", "",
         "the links between two nodes, both ways, are gone from then on: the repair that rondo repair "
         "--all-single-failures --catalogue has prepared"}}});
  groups.push_back({"Output",
                    {{"output", "FILE", "",
                      "the schedule timed for this size, with its bound, as FILE.json or HDF5; with --failed "
                      "what is left to do"}}});
  return groups;
}

std::string percent(double fraction) {
  return fmt::format("{:.2f} %", 100 * fraction);
}

std::vector<std::string> row_of_cell(const Cell& cell) {
  if (cell.is_refused())
    return {format_size(cell.size_bytes), "-", "-", "-", "-", "refused", "-", cell.refusal};
  return {format_size(cell.size_bytes),
          fmt::format("{:.6g}", cell.finish_us),
          fmt::format("{:.6g}", cell.bound->us),
          percent(cell.gap()),
          certificate_kind(cell.bound->certificate),
          catalogue::to_string(cell.way),
          cell.schedule,
          cell.engine};
}

const std::vector<std::string> kCellTitles{"size", "finish us", "bound us", "gap",
                                           "kind", "made",      "schedule", "engine"};

std::string run_catalogue_list(const Settings& settings) {
  const Folder folder = Folder::open(settings.text("path"));
  std::vector<std::vector<std::string>> rows{
      {"series", "fabric", "gpus", "cells", "sizes", "bins", "schedules", "mean gap", "largest gap"}};
  std::string cells;
  for (const Series& series : folder.all_series()) {
    const Table table = folder.table(series);
    const auto topology = folder.fabric(series.fabric);
    double sum = 0;
    double most = 0;
    std::vector<std::string> schedules;
    for (const Cell& cell : table.cells) {
      if (cell.is_refused()) continue;
      sum += cell.gap();
      most = std::max(most, cell.gap());
      schedules.push_back(cell.schedule);
    }
    const auto num_solved = static_cast<double>(schedules.size());
    make_set(schedules);
    rows.push_back({catalogue::describe(series), fmt::format("{} {}", topology->name(), series.fabric),
                    fmt::format("{}", topology->num_gpus()), fmt::format("{}", table.cells.size()),
                    fmt::format("{} to {}", format_size(table.cells.front().size_bytes),
                                format_size(table.cells.back().size_bytes)),
                    table.bins.empty() ? "unfinished" : fmt::format("{}", table.bins.size()),
                    fmt::format("{}", schedules.size()), num_solved > 0 ? percent(sum / num_solved) : "-",
                    percent(most)});
    if (!settings.has("cells")) continue;
    std::vector<std::vector<std::string>> of_series{kCellTitles};
    for (const Cell& cell : table.cells) of_series.push_back(row_of_cell(cell));
    cells +=
        fmt::format("\n{} on {}\n{}", catalogue::describe(series), topology->name(), format_table(of_series));
  }
  return format_table(rows) + cells;
}

std::vector<std::string> row_of_repairs(const Folder& folder, const catalogue::Running& running,
                                        double size_bytes) {
  std::size_t refused = 0;
  double latest_us = 0;
  const auto repairs = catalogue::repairs_at(folder, running);
  for (const catalogue::PreparedRepair& repair : repairs) {
    refused += repair.refused.empty() ? 0 : 1;
    latest_us = std::max(latest_us, repair.whole_finish_us);
  }
  return {format_size(size_bytes),          running.digest,
          fmt::format("{}", running.at_us), fmt::format("{}", repairs.size()),
          fmt::format("{}", refused),       fmt::format("{:.6g}", latest_us)};
}

std::string run_catalogue_show(const Settings& settings) {
  const Folder folder = Folder::open(settings.text("path"));
  const Table table = folder.table(series_in(folder, settings));
  if (table.cells.empty()) {
    throw Error(ExitCode::no_input,
                fmt::format("the catalogue has no {}; rondo catalogue list shows what it has",
                            catalogue::describe(table.series)));
  }
  std::vector<std::vector<std::string>> cells{kCellTitles};
  for (const Cell& cell : table.cells) cells.push_back(row_of_cell(cell));
  std::vector<std::vector<std::string>> bins{
      {"from", "below", "schedule", "last size: this, next us", "next size: this, next us"}};
  for (const catalogue::Bin& bin : table.bins) {
    std::vector<std::string> row{shown_size(bin.from_bytes), shown_size(bin.to_bytes), bin.schedule, "-",
                                 "-"};
    if (bin.border) {
      const auto& border = *bin.border;
      row[3] =
          fmt::format("{} B: {:.6g}, {:.6g}", border.below_bytes, border.below_us, border.below_other_us);
      row[4] =
          fmt::format("{} B: {:.6g}, {:.6g}", border.above_bytes, border.above_other_us, border.above_us);
    }
    bins.push_back(std::move(row));
  }
  std::string sketches;
  for (const Cell& cell : table.cells) {
    if (cell.sketch.empty()) continue;
    sketches += fmt::format("{} was found over the links of sketch {} (GPUs of a node > of others)\n",
                            format_size(cell.size_bytes), cell.sketch);
  }
  std::vector<std::vector<std::string>> repairs{
      {"repairs of", "digest", "links fail at us", "failures", "without a repair", "latest finish us"}};
  for (const Cell& cell : table.cells) {
    for (const double at_us : catalogue::repair_times(folder, table.series.fabric, cell.digest))
      repairs.push_back(row_of_repairs(folder, {table.series.fabric, cell.digest, at_us}, cell.size_bytes));
  }
  const Cell& first = table.cells.front();
  return fmt::format("{} on {}, made by {} with {}\n\n{}{}\n{}", catalogue::describe(table.series),
                     folder.fabric(table.series.fabric)->name(), first.producer, first.settings,
                     format_table(cells), sketches,
                     table.bins.empty() ? "the build is unfinished\n" : format_table(bins)) +
         (repairs.size() > 1 ? "\n" + format_table(repairs) : "");
}

/// The schedule of a bin at any size, proven.
ProvenSchedule proven_at(const Folder& folder, const Series& series, const std::string& schedule,
                         double size_bytes) {
  ProvenSchedule proven = catalogue::timed_at(folder, series, schedule, size_bytes);
  const auto topology = folder.fabric(series.fabric);
  const auto alone = make_local_communicator();
  proven.lower_bound =
      rondo::bound({topology, catalogue::demand_of(series, size_bytes, topology->num_gpus())}, {*alone})
          .best();
  verify(proven);
  return proven;
}

/// What is prepared for a failure of links while the schedule of a bin is running at a size.
std::string lookup_repair(const Folder& folder, const Series& series, const std::string& schedule,
                          const Settings& settings) {
  const auto topology = folder.fabric(series.fabric);
  const std::vector<LinkSelector> failed =
      link_selectors("failed", settings.text("failed"), *topology, false);
  if (failed.size() != 1) {
    throw Error(ExitCode::usage,
                fmt::format("--failed names {} pairs of nodes; repairs are prepared for one", failed.size()));
  }
  links_of(*topology, failed.front());
  const ProvenSchedule running =
      catalogue::timed_at(folder, series, schedule, parse_size(settings.text("size")));
  const catalogue::PreparedRepair found = catalogue::find_repair(
      folder, {series.fabric, schedule_digest(running.demand, running.schedule), settings.fraction("at")},
      failed.front().a, failed.front().b);
  if (!found.refused.empty()) throw Error(ExitCode::unavailable, found.refused);
  std::string text;
  if (found.rest.empty()) {
    text = "nothing is left to do: all that is wanted has arrived or is in flight on other links\n";
  } else {
    text = fmt::format("{}\nrest: finish {:.6g} us, bound {:.6g} us, gap {} ({}), digest {}\n",
                       found.rest.string(), found.finish_us, found.lower_bound_us,
                       percent(found.finish_us / found.lower_bound_us - 1), found.made_by, found.digest);
  }
  text += fmt::format("whole: finish {:.6g} us, {:.6g} us without the failure\n", found.whole_finish_us,
                      running.schedule.finish_us);
  if (!settings.has("output")) return text;
  if (found.rest.empty()) throw Error(ExitCode::bad_data, "nothing is left to do then; leave --output out");
  write_schedule(settings.text("output"), read_schedule(found.rest));
  return text + fmt::format("wrote {}\n", settings.text("output"));
}

std::string run_catalogue_lookup(const Settings& settings) {
  const std::filesystem::path path = settings.text("path");
  const Folder folder = Folder::open(path);
  const double size_bytes = parse_size(settings.text("size"));
  const Series series = series_in(folder, settings);
  const catalogue::Catalogue index(path);
  const catalogue::Found found =
      index.lookup({series.collective, size_bytes, series.fabric, series.root, series.group, series.relays});
  if (settings.has("failed")) return lookup_repair(folder, series, found.schedule.stem(), settings);
  std::string text = fmt::format(
      "{}\nbest of the catalogue from {} to below {}; at {}: finish {:.6g} us, bound {:.6g} us ({}), gap "
      "{}\n",
      found.schedule.string(), shown_size(found.from_bytes), shown_size(found.to_bytes),
      format_size(found.cell_bytes), found.finish_us, found.bound_us, found.certificate, percent(found.gap));
  if (!settings.has("output")) return text;
  const ProvenSchedule proven = proven_at(folder, series, found.schedule.stem(), size_bytes);
  write_schedule(settings.text("output"), proven);
  return text + fmt::format("at {}: {}; wrote {}\n", format_size(size_bytes), describe(figures_of(proven)),
                            settings.text("output"));
}

}  // namespace

Command catalogue_list_command() {
  return {.name = "catalogue list",
          .arguments = "DIR [--cells]",
          .summary = "what a catalogue holds",
          .positional = "path",
          .notes = "",
          .options = list_groups,
          .run = on_root_alone(run_catalogue_list)};
}

Command catalogue_show_command() {
  return {.name = "catalogue show",
          .arguments = "DIR --collective NAME [--group LIST] [--topology ...]",
          .summary = "the cells of one series, and between which sizes its best schedule changes",
          .positional = "path",
          .notes = "",
          .options = series_groups,
          .run = on_root_alone(run_catalogue_show)};
}

Command catalogue_lookup_command() {
  return {.name = "catalogue lookup",
          .arguments = "DIR --collective NAME --size SIZE [--output FILE]",
          .summary = "the schedule for a size",
          .positional = "path",
          .notes =
              "A program that asks often uses rondo/catalogue/catalogue.hpp: Catalogue::lookup takes some "
              "microseconds.\n\n"
              "Example:\n"
              "  rondo catalogue lookup ndv2 --collective allgather --size 3MB --output ag.h5\n"
              "  rondo catalogue lookup ndv2 --collective allgather --size 3MB --at 100 --failed c0g1:c0g3\n",
          .options = lookup_groups,
          .run = on_root_alone(run_catalogue_lookup)};
}

}  // namespace rondo::cli
