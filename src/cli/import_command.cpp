#include <fmt/format.h>

#include <optional>

#include "command.hpp"
#include "fabrics.hpp"
#include "problem.hpp"
#include "report.hpp"
#include "rondo/core/algorithm.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/core/units.hpp"
#include "rondo/core/verify.hpp"
#include "rondo/core/version.hpp"
#include "rondo/io/algorithm_files.hpp"
#include "rondo/io/files.hpp"
#include "rondo/io/read_as.hpp"
#include "rondo/io/user_block.hpp"
#include "rondo/msccl/xml.hpp"
#include "rondo/pipeline/bound.hpp"
#include "rondo/xmlcheck/algorithm_of.hpp"
#include "run_folder.hpp"

namespace rondo::cli {
namespace {

std::vector<OptionGroup> import_option_groups() {
  return {{"Input",
           {{"path", "FILE", "",
             "algorithm JSON of msccl-tools, SCCL or TACCL, MSCCL XML, or a schedule of TE-CCL"},
            {"size", "SIZE", "", "of the collective: B, KB, MB, GB (decimal), KiB, MiB, GiB"},
            {"join", "auto|off", "auto",
             "where links have message costs, whether what the file sends as one message, or in one step "
             "between two GPUs, goes together"}}},
          fabric_options(degrading_seed()),
          {"Output",
           {{"output", "DIR", "", "folder for schedule.h5, report.json and problem.json; made if need be"},
            {"force", "", "", "replace what a run left in DIR"}}}};
}

bool joins(const Settings& settings) {
  const std::string& join = settings.text("join");
  if (join != "auto" && join != "off")
    throw Error(ExitCode::usage, fmt::format("--join is '{}'; it is auto or off", join));
  return join == "auto";
}

struct Imported {
  Algorithm algorithm;
  std::string format;  ///< for the report
  std::string digest;  ///< of the file
};

Imported read_algorithm(const std::filesystem::path& path, double size_bytes) {
  const msccl::XmlLimits limits;
  const std::string text = read_text_file(path, limits.bytes);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return naming_file(path, [&]() -> Imported {
    if (first != std::string::npos && text[first] == '<')
      return {xmlcheck::algorithm_of(msccl::parse_xml(text, limits), size_bytes), "msccl-xml",
              digest_of(text)};
    const Json json = parse_json(text, path.filename().string());
    const char* format = !json.is_object()             ? ""
                         : json.contains("7-Flows")    ? "teccl-json"
                         : json.contains("msccl_type") ? "msccl-json"
                                                       : "taccl-json";
    return {algorithm_from_any_json(json, size_bytes), format, digest_of(text)};
  });
}

/// Replayed on the fabric, with its bound.
ProvenSchedule proven(const Imported& imported, const std::shared_ptr<const Topology>& topology, bool join) {
  const Demand& demand = imported.algorithm.demand;
  Schedule schedule = timed(imported.algorithm, *topology, join);
  const ReplayResult replayed = replay(*topology, demand, schedule.sends);
  if (!replayed.valid()) {
    throw Error(ExitCode::unavailable,
                fmt::format("timed on '{}' its sums meet in another order than step by step: {}",
                            topology->name(), *replayed.violation));
  }
  schedule.finish_us = replayed.finish_us;
  const auto communicator = make_local_communicator();
  // Bounds hold for any chunks.
  const Demand asked = demand.collective() == Collective::custom ? demand : demand.with_chunks(1);
  const LowerBound bound = rondo::bound({topology, asked}, {*communicator}).best();
  ProvenSchedule result{*topology, demand, std::move(schedule), bound, producer()};
  verify(result);
  return result;
}

std::string run_import(const Settings& settings) {
  const Stopwatch clock;
  const double size_bytes = parse_size(settings.text("size"));
  const bool join = joins(settings);
  const auto topology = std::make_shared<const Topology>(fabric_of(settings));
  const Imported imported = read_algorithm(settings.text("path"), size_bytes);
  SynthesisResult result{proven(imported, topology, join)};
  const Figures figures = figures_of(result.proven);
  result.gap = figures.gap;
  result.engine = "import/" + imported.format;
  const Demand& demand = result.proven.demand;
  int steps = 0;
  for (const AlgorithmSend& send : imported.algorithm.sends) steps = std::max(steps, send.step + 1);
  result.metrics = {{"steps", steps}, {"transfers", static_cast<double>(imported.algorithm.sends.size())}};
  result.remarks.push_back(fmt::format("'{}': {} in {} chunks a contribution", imported.algorithm.name,
                                       to_string(demand.collective()), demand.chunks_per_contribution()));

  const auto communicator = make_local_communicator();
  const Json problem = problem_to_json(
      {topology, demand.with_chunks(1), root_of(demand)},
      {{"imported", settings.text("path")}, {"imported_digest", imported.digest}, {"join", join}});
  RunFolder folder(settings.text("output"));
  if (!settings.has("force") && folder.finished_report(problem))
    throw Error(ExitCode::bad_data,
                fmt::format("{} has this very result; --force replaces it", settings.text("output")));
  folder.begin(problem, true, nullptr);
  folder.write_schedule(problem, result.proven);
  Json report = make_report(result, schedule_digest(result.proven.demand, result.proven.schedule),
                            *communicator, clock);
  report["durability"] = {{"seconds", 0.0}, {"share_of_run", 0.0}};
  folder.finish(report);
  return result.remarks.front() + "\n" +
         fmt::format("{}; in {}: schedule.h5, report.json, problem.json\n", describe(figures),
                     settings.text("output"));
}

}  // namespace

Command import_command() {
  return {
      .name = "import",
      .arguments = "FILE --topology NAME|FILE|SPEC --size SIZE --output DIR",
      .summary = "time another producer's algorithm on a fabric, prove how good it is, and write the run",
      .positional = "path",
      .notes =
          "Reads algorithm JSON of msccl-tools, SCCL and TACCL, MSCCL XML and schedules of TE-CCL, and tells "
          "them\napart by themselves. Paths between GPUs and the order on every link are kept; times are "
          "those of the\nfabric. The run is as one of rondo solve: show it with rondo export, improve it "
          "with rondo solve --from.\n\n"
          "Examples:\n"
          "  rondo import allgather.msccl.json --topology dgx1 --size 1GB --output runs/imported\n"
          "  rondo import allreduce.xml --topology ndv2-2 --size 64MB --output runs/imported\n",
      .options = import_option_groups,
      .run = on_root_alone(run_import)};
}

}  // namespace rondo::cli
