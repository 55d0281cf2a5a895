#include <fmt/format.h>

#include <algorithm>

#include "command.hpp"
#include "export_msccl.hpp"
#include "nearest.hpp"
#include "rondo/core/error.hpp"
#include "rondo/io/files.hpp"
#include "rondo/io/json_files.hpp"
#include "verification.hpp"

namespace rondo::cli {
namespace {

/// A form that schedules can be written in.
struct Format {
  std::string name;
  std::string (*write)(const ProvenSchedule& proven, const Settings& settings);
};

std::string write_json(const ProvenSchedule& proven, const Settings&) {
  return format_json(schedule_to_json(proven));
}

const std::vector<Format>& formats() {
  static const std::vector<Format> all = {{"json", write_json}, {"msccl-xml", write_msccl_xml}};
  return all;
}

std::vector<std::string> format_names() {
  std::vector<std::string> names;
  for (const Format& format : formats()) names.push_back(format.name);
  return names;
}

std::vector<OptionGroup> option_groups(const std::vector<std::string>&) {
  return {{"Input", {{"path", "PATH", "", "a schedule (FILE.h5, FILE.json) or the folder of a run"}}},
          {"Output",
           {{"format", "NAME", formats().front().name, join(format_names())},
            {"output", "FILE", "", "file to write; replaced if it exists"}}},
          msccl_options()};
}

std::string run_export(const Settings& settings) {
  const std::string& name = settings.text("format");
  const auto format =
      std::find_if(formats().begin(), formats().end(), [&](const Format& f) { return f.name == name; });
  if (format == formats().end()) {
    throw Error(ExitCode::usage, fmt::format("--format is '{}'; known are: {}", name, join(format_names())));
  }
  const std::string& output = settings.text("output");
  write_text_file(output, format->write(load_schedule(settings.text("path")), settings));
  return fmt::format("wrote {}\n", output);
}

}  // namespace

Command export_command() {
  return {.name = "export",
          .arguments = "PATH --format NAME --output FILE",
          .summary = "write a schedule in another form",
          .positional = "path",
          .notes =
              "json is the format rondo-schedule; msccl-xml is for the MSCCL executors, checked as by rondo "
              "check-xml.\n"
              "A schedule beyond a cap of the executor is refused with the cap's name (exit code 69).\n\n"
              "Examples:\n"
              "  rondo export runs/a --format json --output schedule.json\n"
              "  rondo export runs/a --format msccl-xml --output allgather.xml --instances 2\n",
          .options = option_groups,
          .run = on_root_alone(run_export)};
}

}  // namespace rondo::cli
