#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "catalogue_options.hpp"
#include "command.hpp"
#include "fabrics.hpp"
#include "interrupt.hpp"
#include "progress.hpp"
#include "rondo/catalogue/build.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/make_set.hpp"
#include "rondo/core/stopwatch.hpp"
#include "rondo/io/json_files.hpp"
#include "rondo/io/run_lock.hpp"
#include "run.hpp"
#include "solve_options.hpp"

namespace rondo::cli {
namespace {

using catalogue::BuildSummary;
using catalogue::BuildTask;
using catalogue::Folder;
using catalogue::Series;

std::vector<Option> solving_options() {
  return {{"tolerance", "G", "1%",
           "a schedule this near to its bound is good enough; and a size for which a neighbour's takes at "
           "most so "
           "much longer than the best found between them gets none of its own"},
          {"improve-work", "W", "2.5e6", "of each cell that is solved, as of rondo solve"},
          {"concurrency", "N", "8", "transfers at a time on a link of a GPU; 0: any"}};
}

Option sketches_option() {
  return {
      "sketches", "N", "0",
      "of each cell that is solved and not within the tolerance, tries the links of at most N sketches made "
      "from the fabric (which NICs of a node send, and to which of the others), those of the least bound "
      "first; a cell then takes up to 1 + N times as long"};
}

std::vector<OptionGroup> build_groups() {
  std::vector<Option> solving = solving_options();
  solving.push_back(sketches_option());
  std::vector<OptionGroup> groups = {
      fabric_options(option_of(find_solve_option("seed"))),
      {"Cells",
       {{"collectives", "NAME,...", "allgather,reduce_scatter,allreduce,alltoall,broadcast",
         "named collectives"},
        {"sizes", "SIZE,...", "1KiB..1GiB",
         "as of rondo solve; A..B: from A to B, each twice the one before"},
        {"groups", "LIST;...", "all", "groups of GPUs: all;0-7;8-15"},
        {"relay", "any|none", "any", "none: GPUs outside a group neither send nor receive"},
        {"root", "GPU", "0", "of collectives that have one; the first GPU of a group without it"}}},
      {"Solving", std::move(solving)},
      {"Output",
       {{"output", "DIR", "", "folder of the catalogue; cells that are there are not made again"},
        {"force", "", "", "make them again"}}}};
  return groups;
}

std::vector<OptionGroup> refresh_groups() {
  OptionGroup fabric = fabric_options(option_of(find_solve_option("seed")));
  return {{"Input", {catalogue_option()}},
          std::move(fabric),
          {"Cells",
           {{"from-fabric", "FINGERPRINT", "",
             "the fabric whose cells to begin with (default: the only other one)"}}},
          {"Solving", solving_options()}};
}

catalogue::BuildOptions read_build_options(const Settings& settings) {
  catalogue::BuildOptions options;
  options.tolerance = settings.fraction("tolerance");
  for (const char* name : {"seed", "improve-work", "concurrency"})
    set_option(options.solve, find_solve_option(name), settings.text(name));
  return options;
}

constexpr int kMostSketches = 1000;

std::vector<Series> asked_series(const Settings& settings, const Topology& topology) {
  const auto groups = parse_groups(settings.text("groups"), topology.num_gpus());
  const std::string& relay = settings.text("relay");
  if (relay != "any" && relay != "none")
    throw Error(ExitCode::usage, fmt::format("--relay is '{}'; it is any or none", relay));
  const bool has_group = std::ranges::any_of(groups, [](const auto& group) { return !group.empty(); });
  settings.refuse_ignored(
      "relay",
      has_group ? "" : "every GPU takes part, so that none only relays; give --groups, or leave it out");
  std::vector<Series> all;
  bool has_root = false;
  for (const Collective collective : parse_collectives(settings.text("collectives"))) {
    has_root = has_root || collective->has_root;
    for (const auto& group : groups) {
      Series series{catalogue::fingerprint(topology), collective, GpuId{0}, group,
                    relay == "any" || group.empty()};
      if (collective->has_root) {
        series.root = GpuId(static_cast<std::int32_t>(settings.integer("root", 0, 1 << 30)));
        if (!settings.is_given("root") && !group.empty()) series.root = group.front();
      }
      demand_of(series, 1e6, topology.num_gpus());  // refuses a root out of range
      all.push_back(std::move(series));
    }
  }
  settings.refuse_ignored("root", has_root ? "" : "no collective here has a root; leave it out");
  return all;
}

std::string summary_text(const BuildSummary& summary, const Folder& folder, double seconds) {
  std::string text;
  for (const std::string& why : summary.damaged) text += "made again: " + why + "\n";
  std::string made;
  for (const auto& [way, cells] : summary.made)
    made += fmt::format("{}{} {}", made.empty() ? "" : ", ", cells, way);
  return text + fmt::format("cells: {}{}; {:.1f} s; in {}: index.sqlite, cells, schedules\n",
                            made.empty() ? "none made" : made,
                            summary.found > 0 ? fmt::format(", {} were there", summary.found) : "", seconds,
                            folder.path().string());
}

/// Collective. Builds into a locked folder; `prepare`, on the root, gives the task but for its topology.
std::string build_into(const std::filesystem::path& path, const std::function<void(const Folder&)>& prepare,
                       const std::function<BuildTask(const Folder&)>& task_of,
                       const Communicator& communicator) {
  const InterruptGuard guard;
  const Stopwatch clock;
  std::optional<RunLock> lock;  // on the root
  from_root(communicator, [&] {
    const Folder folder = Folder::open_or_make(path);
    lock.emplace(path);
    prepare(folder);
    return std::string();
  });
  const Folder folder = Folder::open(path);
  ProgressLine line;
  const RunContext context{communicator, [&](const std::string& text) { line.show(text); }, &guard.flag()};
  const BuildSummary summary = catalogue::build(folder, task_of(folder), context);
  return from_root(communicator, [&] {
    lock->check();
    catalogue::write_index(folder);
    return summary_text(summary, folder, clock.seconds());
  });
}

/// Collective. All ranks work on what the root has read.
std::shared_ptr<const Topology> shared_fabric(const Settings& settings, const Communicator& communicator) {
  const std::string text =
      from_root(communicator, [&] { return topology_to_json(fabric_of(settings)).dump(); });
  return std::make_shared<const Topology>(topology_from_json(parse_json(text, "topology")));
}

std::string run_catalogue_build(const Settings& settings, const Communicator& communicator) {
  const auto topology = shared_fabric(settings, communicator);
  BuildTask task{.topology = topology,
                 .series = asked_series(settings, *topology),
                 .sizes = parse_sizes(settings.text("sizes")),
                 .options = read_build_options(settings),
                 .anew = settings.has("force")};
  task.options.sketches = static_cast<int>(settings.integer("sketches", 0, kMostSketches));
  return build_into(
      settings.text("output"), [&](const Folder& folder) { folder.add_fabric(*topology); },
      [&](const Folder&) { return task; }, communicator);
}

std::string older_fabric(const Folder& folder, const Settings& settings, const std::string& newer) {
  std::vector<std::string> others = folder.fabrics();
  std::erase(others, newer);
  if (settings.has("from-fabric")) {
    const std::string& name = settings.text("from-fabric");
    if (std::ranges::find(others, name) != others.end()) return name;
    throw Error(ExitCode::usage,
                fmt::format("--from-fabric is '{}', which is no other fabric of the catalogue; "
                            "rondo catalogue list shows them",
                            name));
  }
  if (others.size() == 1) return others.front();
  throw Error(ExitCode::usage,
              fmt::format("the catalogue is of {} fabrics other than the new one; name one with "
                          "--from-fabric",
                          others.size()));
}

std::string run_catalogue_refresh(const Settings& settings, const Communicator& communicator) {
  const auto topology = shared_fabric(settings, communicator);
  const std::string newer = catalogue::fingerprint(*topology);
  const std::filesystem::path path = settings.text("path");
  from_root(communicator, [&] {
    older_fabric(Folder::open(path), settings, newer);
    return std::string();
  });
  const auto task_of = [&](const Folder& folder) {
    BuildTask task{.topology = topology, .series = {}, .sizes = {}, .options = read_build_options(settings)};
    const std::string older = older_fabric(folder, settings, newer);
    for (const Series& series : folder.all_series()) {
      if (series.fabric != older) continue;
      task.older.push_back(folder.table(series));
      task.series.push_back(series);
      task.series.back().fabric = newer;
      for (const catalogue::Cell& cell : task.older.back().cells) task.sizes.push_back(cell.size_bytes);
    }
    make_set(task.sizes);
    if (task.sizes.empty()) throw Error(ExitCode::no_input, path.string() + " has no cells of that fabric");
    return task;
  };
  return build_into(
      path, [&](const Folder& folder) { folder.add_fabric(*topology); }, task_of, communicator);
}

}  // namespace

Command catalogue_build_command() {
  return {
      .name = "catalogue build",
      .arguments = "--topology NAME|FILE|SPEC --output DIR [--collectives ...] [--sizes ...] [--groups ...]",
      .summary = "the schedules of a fabric for many collectives and sizes, each size served by the best",
      .positional = "",
      .notes =
          "Each cell (a collective at a size) is solved on one rank, or takes a neighbour's schedule, timed "
          "anew. A\nbuild that was stopped (TERM, USR1: exit code 75) or killed goes on with the same "
          "command, on any\nnumber of ranks, and ends with the same catalogue.\n\n"
          "Examples:\n"
          "  mpirun -n 2 rondo catalogue build --topology ndv2-2 --output ndv2\n"
          "  rondo catalogue build --topology dgx2-2 --collectives allgather --sizes 1KB,64KB,4MB "
          "--groups 'all;0-15' --output dgx2\n",
      .options = build_groups,
      .run = run_catalogue_build};
}

Command catalogue_refresh_command() {
  return {
      .name = "catalogue refresh",
      .arguments = "DIR --topology NEW [--degrade ...] [--without ...]",
      .summary = "the same cells on other figures: kept where they do as well there, else adapted",
      .positional = "path",
      .notes =
          "The cells of the new fabric stand beside the old ones (rondo catalogue prune --keep removes "
          "those). What is\nwithin the tolerance of its bound there, or of its gap before, stays, timed "
          "anew; "
          "the rest is adapted, until it\nis so near, from the old schedule (sums also from what was found "
          "for AllGather, backwards or in two halves),\nor solved where that is not possible. Stops and goes "
          "on as rondo catalogue build does.\n\n"
          "Example:\n"
          "  mpirun -n 2 rondo catalogue refresh ndv2 --topology ndv2-2 --degrade 0.05:0.5\n",
      .options = refresh_groups,
      .run = run_catalogue_refresh};
}

}  // namespace rondo::cli
