#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "catalogue_options.hpp"
#include "command.hpp"
#include "fabrics.hpp"
#include "rondo/catalogue/build.hpp"
#include "rondo/catalogue/repairs.hpp"
#include "rondo/catalogue/sampling.hpp"
#include "rondo/catalogue/upkeep.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/units.hpp"
#include "rondo/io/json_files.hpp"
#include "rondo/io/run_lock.hpp"
#include "run.hpp"
#include "table.hpp"

namespace rondo::cli {
namespace {

using catalogue::Folder;

std::vector<OptionGroup> verify_groups() {
  return {
      {"Input", {catalogue_option()}},
      {"What to do",
       {{"random-sizes", "N", "",
         "also look N random sizes up, and compare the schedule that is found with all of their series: by "
         "what replays at other sizes leave possible (times are convex in the size), by replay where that "
         "does not decide, and at every 32nd size in any case"},
        {"repair", "", "", "first make the index anew from the other files"}}}};
}

std::string run_catalogue_verify(const Settings& settings, const Communicator& communicator) {
  const std::filesystem::path path = settings.text("path");
  from_root(communicator, [&] {
    const Folder folder = Folder::open(path);
    if (!settings.has("repair")) return std::string();
    const RunLock lock(path);
    catalogue::write_index(folder);
    return std::string();
  });
  const Folder folder = Folder::open(path);
  const catalogue::Verified found = catalogue::verify(folder, {communicator});
  const std::string text = from_root(communicator, [&] {
    std::vector<std::string> faults = found.faults;
    const catalogue::VerifiedRepairs repairs = catalogue::verify_repairs(folder);
    faults.insert(faults.end(), repairs.faults.begin(), repairs.faults.end());
    try {
      const catalogue::Catalogue index(path);
    } catch (const Error& error) {
      faults.emplace_back(error.what());
    }
    if (!faults.empty()) {
      std::string all = fmt::format("{} faults in {}:", faults.size(), path.string());
      constexpr std::size_t kShown = 20;
      for (std::size_t i = 0; i < std::min(faults.size(), kShown); ++i) all += "\n  " + faults[i];
      throw Error(ExitCode::bad_data, all +
                                          "\nrondo catalogue build with the options of the first time makes "
                                          "damaged cells again, verify --repair the index");
    }
    return fmt::format("{} cells, {} schedules, {} borders{}: replayed, bounds derived; the index is whole\n",
                       found.cells, folder.schedules().size(), found.borders,
                       repairs.repairs > 0 ? fmt::format(", {} repairs", repairs.repairs) : "");
  });
  if (!settings.has("random-sizes")) return text;
  const catalogue::Sampled sampled = catalogue::sample(
      folder, static_cast<std::size_t>(settings.integer("random-sizes", 1, 1'000'000)), 0, {communicator});
  return text + fmt::format(
                    "{} random sizes: {} with the best schedule of their series; largest loss {:.3f} %, mean "
                    "{:.4f} %; "
                    "a look-up takes {:.1f} us; {} replays, {} of them not as times at other sizes say{}\n",
                    sampled.sizes, sampled.best, 100 * sampled.largest_loss, 100 * sampled.mean_loss,
                    sampled.lookup_us, sampled.replays, sampled.surprises,
                    sampled.largest_loss > 0
                        ? fmt::format("; most is lost by {} of {}", sampled.largest_loss_series,
                                      format_size(sampled.largest_loss_bytes))
                        : "");
}

std::vector<OptionGroup> check_groups() {
  OptionGroup fabric = fabric_options();
  fabric.options.front().help = "the fabric as it is now: " + fabric.options.front().help;
  return {{"Input",
           {catalogue_option(),
            {"from-fabric", "FINGERPRINT", "",
             "whose cells to check (default: the only fabric that is another)"}}},
          std::move(fabric),
          {"Verdict",
           {{"tolerance", "G", "1%", "a gap that grew by more is solved again by catalogue refresh"}}}};
}

std::string describe_checked(const std::vector<catalogue::Checked>& cells) {
  std::vector<std::vector<std::string>> rows{
      {"series", "size", "finish us", "gap", "there us", "bound there us", "gap there", "verdict"}};
  std::map<std::string, int> count;
  for (const catalogue::Checked& cell : cells) {
    ++count[to_string(cell.verdict)];
    const bool is_broken = cell.verdict == catalogue::Verdict::broken;
    rows.push_back(
        {catalogue::describe(cell.series), format_size(cell.size_bytes),
         fmt::format("{:.6g}", cell.finish_before_us), fmt::format("{:.2f} %", 100 * cell.gap_before),
         is_broken ? "-" : fmt::format("{:.6g}", cell.finish_us), fmt::format("{:.6g}", cell.bound_us),
         is_broken ? "-" : fmt::format("{:.2f} %", 100 * cell.gap),
         to_string(cell.verdict) + (is_broken ? ": " + cell.reason : "")});
  }
  std::string text = format_table(rows);
  std::string sum;
  for (const auto& [verdict, cells_of] : count)
    sum += fmt::format("{}{} {}", sum.empty() ? "" : ", ", cells_of, verdict);
  return text + sum + "\n";
}

std::string run_catalogue_check(const Settings& settings, const Communicator& communicator) {
  const std::string text =
      from_root(communicator, [&] { return topology_to_json(fabric_of(settings)).dump(); });
  const auto topology = std::make_shared<const Topology>(topology_from_json(parse_json(text, "topology")));
  const Folder folder = Folder::open(settings.text("path"));
  std::vector<std::string> others = folder.fabrics();
  if (settings.has("from-fabric")) {
    std::erase_if(others, [&](const std::string& name) { return name != settings.text("from-fabric"); });
  } else {
    std::erase(others, catalogue::fingerprint(*topology));
  }
  if (others.size() != 1) {
    throw Error(ExitCode::usage,
                fmt::format("the catalogue is of {} fabrics that are {}; name one with --from-fabric",
                            others.size(), settings.has("from-fabric") ? "so named" : "not the new one"));
  }
  const auto cells =
      catalogue::check(folder, others.front(), topology, settings.fraction("tolerance"), {communicator});
  return describe_checked(cells);
}

std::vector<OptionGroup> merge_groups() {
  return {
      {"Input", {catalogue_option(), {"from", "DIR,...", "", "the catalogues whose cells come into DIR"}}},
      {"What to do",
       {{"same", "refuse|best", "refuse",
         "a cell that two catalogues have, with different schedules: refuse, naming it, before anything "
         "changes; or keep the one that ends earlier"}}}};
}

std::string run_catalogue_merge(const Settings& settings, const Communicator& communicator) {
  const std::filesystem::path path = settings.text("path");
  const std::string& same = settings.text("same");
  if (same != "refuse" && same != "best")
    throw Error(ExitCode::usage, fmt::format("--same is '{}'; it is refuse or best", same));
  std::optional<RunLock> lock;  // on the root
  std::string text = from_root(communicator, [&] {
    const Folder folder = Folder::open_or_make(path);
    lock.emplace(path);
    std::string lines;
    std::string rest = settings.text("from");
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find(','), rest.size());
      const std::string from = rest.substr(0, end);
      rest.erase(0, end + 1);
      const catalogue::Merged merged =
          catalogue::merge(folder, Folder::open(from),
                           same == "best" ? catalogue::SameCell::best : catalogue::SameCell::refuse);
      lines += fmt::format("{}: {} cells came, {} were equal, {} ended earlier, {} later\n", from,
                           merged.cells, merged.equal, merged.better, merged.worse);
    }
    return lines;
  });
  const Folder folder = Folder::open(path);
  catalogue::find_bins(folder, folder.all_series(), {communicator});
  return from_root(communicator, [&] {
    lock->check();
    catalogue::write_index(folder);
    return text;
  });
}

std::vector<OptionGroup> prune_groups() {
  return {{"Input", {catalogue_option()}},
          {"What to do",
           {{"keep", "FINGERPRINT,...", "", "remove the cells of all other fabrics (default: of none)"}}}};
}

std::string run_catalogue_prune(const Settings& settings) {
  const std::filesystem::path path = settings.text("path");
  const Folder folder = Folder::open(path);
  const RunLock lock(path);
  std::vector<std::string> keep;
  if (settings.has("keep")) {
    std::string rest = settings.text("keep");
    const std::vector<std::string> there = folder.fabrics();
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find(','), rest.size());
      keep.push_back(rest.substr(0, end));
      rest.erase(0, end + 1);
      if (std::ranges::find(there, keep.back()) == there.end()) {
        throw Error(ExitCode::usage,
                    fmt::format("--keep names '{}', which is no fabric of the catalogue; rondo "
                                "catalogue list shows them",
                                keep.back()));
      }
    }
  }
  const catalogue::Pruned pruned = catalogue::prune(folder, keep);
  catalogue::write_index(folder);
  return fmt::format("removed {} cells and {} schedules of {}\n", pruned.cells, pruned.schedules,
                     format_size(static_cast<double>(pruned.bytes)));
}

}  // namespace

Command catalogue_verify_command() {
  return {.name = "catalogue verify",
          .arguments = "DIR [--repair]",
          .summary = "replay every cell, derive every bound, check every border and the index",
          .positional = "path",
          .notes = "",
          .options = verify_groups,
          .run = run_catalogue_verify};
}

Command catalogue_check_command() {
  return {.name = "catalogue check",
          .arguments = "DIR --topology NEW [--degrade ...] [--without ...]",
          .summary = "what each cell is worth on other figures: kept, to be solved again, or broken",
          .positional = "path",
          .notes =
              "Example:\n"
              "  rondo catalogue check ndv2 --topology ndv2-2 --degrade 0.05:0.5\n",
          .options = check_groups,
          .run = run_catalogue_check};
}

Command catalogue_merge_command() {
  return {.name = "catalogue merge",
          .arguments = "DIR --from DIR,...",
          .summary = "add the cells of other catalogues",
          .positional = "path",
          .notes = "",
          .options = merge_groups,
          .run = run_catalogue_merge};
}

Command catalogue_prune_command() {
  return {.name = "catalogue prune",
          .arguments = "DIR [--keep FINGERPRINT,...]",
          .summary = "remove schedules that no size uses, and cells of fabrics that are gone",
          .positional = "path",
          .notes = "",
          .options = prune_groups,
          .run = on_root_alone(run_catalogue_prune)};
}

}  // namespace rondo::cli
