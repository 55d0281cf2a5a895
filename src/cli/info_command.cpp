#include <fmt/format.h>

#include "command.hpp"
#include "describe_topology.hpp"
#include "figures.hpp"
#include "problem.hpp"
#include "report.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/units.hpp"
#include "rondo/io/files.hpp"
#include "rondo/io/read_as.hpp"
#include "rondo/io/schedule_files.hpp"
#include "run_inventory.hpp"
#include "table.hpp"

namespace rondo::cli {
namespace {

namespace fs = std::filesystem;

std::vector<OptionGroup> info_option_groups() {
  return {{"Input", {{"path", "PATH", "", "the folder of a run, or a file of Rondo: .h5 or .json"}}}};
}

std::string describe_schedule(const ProvenSchedule& proven) {
  const Demand& demand = proven.demand;
  const auto chunk_bytes = demand.uniform_chunk_bytes();
  std::vector<std::vector<std::string>> rows = {
      {"collective", fmt::format("{} of {}{}", to_string(demand.collective()),
                                 format_size(demand.size_bytes()), describe(demand.shape()))},
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
  const ProblemDocument problem = problem_from_json(json);
  std::vector<std::vector<std::string>> rows = {
      {"collective", fmt::format("{} of {}{}", to_string(problem.demand.collective()),
                                 format_size(problem.demand.size_bytes()), describe(problem.demand.shape()))},
      {"topology", topology_line(*problem.topology)}};
  for (const auto& [name, value] : json.at("options").items()) rows.push_back({name, value.dump()});
  return "problem\n" + format_table(rows);
}

std::string describe_json(const Json& json) {
  const std::string format = json.is_object() && json.contains("format") && json["format"].is_string()
                                 ? json["format"].get<std::string>()
                                 : "";
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

/// Files of a run carry a checksum.
std::string describe_file(const fs::path& path) {
  const std::string text = read_text_file(path);
  const Json json = parse_json(text, path.string());
  const std::string format = json.is_object() && json.contains("format") ? json["format"].dump() : "";
  const bool is_sealed = format == "\"rondo-problem\"" || format == "\"rondo-report\"";
  return naming_file(path,
                     [&] { return describe_json(is_sealed ? parse_sealed_json(text, "the file") : json); });
}

std::string run_info(const Settings& settings) {
  const fs::path path = settings.text("path");
  if (path.extension() == ".json") return describe_file(path);
  if (!fs::is_directory(path)) return describe_schedule(read_schedule(path));
  std::string text = describe_run(path);
  for (const char* name : {"problem.json", "report.json"}) {
    try {
      if (fs::exists(path / name)) text.append("\n").append(describe_file(path / name));
    } catch (const Error&) {  // describe_run has reported it
    }
  }
  return text;
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
          .options = info_option_groups,
          .run = on_root_alone(run_info)};
}

}  // namespace rondo::cli
