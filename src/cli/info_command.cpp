#include <fmt/format.h>

#include "command.hpp"
#include "describe_topology.hpp"
#include "input.hpp"
#include "problem.hpp"
#include "report.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/units.hpp"
#include "rondo/io/files.hpp"
#include "rondo/io/round_files.hpp"
#include "table.hpp"
#include "verification.hpp"

namespace rondo::cli {
namespace {

namespace fs = std::filesystem;

std::vector<OptionGroup> option_groups(const std::vector<std::string>&) {
  return {{"Input", {{"path", "PATH", "", "the folder of a run, or a file of Rondo: .h5 or .json"}}}};
}

std::string describe_schedule(const ProvenSchedule& proven) {
  const Demand& demand = proven.demand;
  const auto chunk_bytes = demand.uniform_chunk_bytes();
  std::vector<std::vector<std::string>> rows = {
      {"collective",
       fmt::format("{} of {}", to_string(demand.collective()), format_size(demand.size_bytes()))},
      {"chunks", fmt::format("{} of {}", demand.num_chunks(),
                             chunk_bytes ? format_size(*chunk_bytes) : "different sizes")},
      {"sends", std::to_string(proven.schedule.sends.size())},
      {"claims", describe(figures_of(proven))}};
  if (proven.lower_bound) rows.push_back({"certificate", certificate_kind(proven.lower_bound->certificate)});
  rows.push_back({"producer", proven.producer});
  rows.push_back({"topology", topology_line(proven.topology)});
  return "schedule (not verified here, see rondo verify)\n" + format_table(rows);
}

std::string describe_report(const Json& report) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, value] : report.items()) {
    if (name != "format" && name != "version") {
      rows.push_back({name, value.is_string() ? value.get<std::string>() : value.dump()});
    }
  }
  return fmt::format("report: {}\n", describe(figures_of_report(report))) + format_table(rows);
}

std::string describe_problem(const Json& json) {
  const Problem problem = problem_from_json(json);
  std::vector<std::vector<std::string>> rows = {
      {"collective", fmt::format("{} of {}", to_string(problem.demand.collective()),
                                 format_size(problem.demand.size_bytes()))},
      {"topology", topology_line(*problem.topology)}};
  for (const auto& [name, value] : json.at("options").items()) rows.push_back({name, value.dump()});
  return "problem\n" + format_table(rows);
}

std::string describe_json(const Json& json) {
  const std::string format = json.is_object() ? json.value("format", "") : "";
  if (format == "rondo-topology") return describe_topology(topology_from_json(json));
  if (format == "rondo-schedule") return describe_schedule(schedule_from_json(json));
  if (format == "rondo-problem") return describe_problem(json);
  if (format == "rondo-report") return describe_report(json);
  if (format == "rondo-demand")
    return fmt::format("custom demand of {} chunks\n", json.value("chunks", Json::array()).size());
  throw Error(
      ExitCode::bad_data,
      fmt::format("its format is '{}'; known are rondo-topology, rondo-schedule, rondo-problem, rondo-report "
                  "and rondo-demand",
                  format));
}

/// How far a run without a result is.
std::string describe_unfinished(const fs::path& folder) {
  const RoundPrefix prefix = read_round_files(folder, digest_of(read_text_file(folder / "problem.json")));
  std::string text =
      prefix.rounds.empty()
          ? "unfinished: no whole round; rondo resume begins it\n"
          : fmt::format(
                "unfinished: {} whole rounds, {:.6g} us of the schedule, {} deliveries not sent yet; "
                "rondo resume goes on\n",
                prefix.rounds.size(), prefix.rounds.back().end_us, prefix.rounds.back().state.unmet.size());
  if (!prefix.stopped_by.empty()) text += "damaged: " + prefix.stopped_by + "\n";
  return text;
}

std::string info(const Settings& settings) {
  const fs::path path = settings.text("path");
  if (path.extension() == ".json") return read_as(path, describe_json);
  if (!fs::is_directory(path)) return describe_schedule(load_schedule(path));
  const std::string problem = read_as(path / "problem.json", describe_json);
  if (!fs::exists(path / "report.json")) return fmt::format("{}\n{}", problem, describe_unfinished(path));
  return fmt::format("{}\n{}", problem, read_as(path / "report.json", describe_json));
}

}  // namespace

Command info_command() {
  return {.name = "info",
          .arguments = "PATH",
          .summary = "what a file or the folder of a run is",
          .positional = "path",
          .notes =
              "Examples:\n"
              "  rondo info runs/a\n"
              "  rondo info runs/a/schedule.h5\n"
              "  rondo info jobs/topologies/dgx1.json\n",
          .options = option_groups,
          .run = on_root_alone(info)};
}

}  // namespace rondo::cli
