#include <fmt/format.h>

#include <algorithm>

#include "command.hpp"
#include "export_msccl.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/nearest.hpp"
#include "rondo/io/algorithm_files.hpp"
#include "rondo/io/files.hpp"
#include "rondo/io/json_files.hpp"
#include "rondo/io/round_files.hpp"
#include "rondo/io/schedule_files.hpp"
#include "rondo/pictures/pictures.hpp"

namespace rondo::cli {
namespace {

/// A form that schedules can be written in.
struct Format {
  std::string name;
  std::string (*write)(const PictureSubject& subject, const Settings& settings);
};

std::string write_json(const PictureSubject& subject, const Settings&) {
  return format_json(schedule_to_json(subject.proven));
}

std::string write_xml(const PictureSubject& subject, const Settings& settings) {
  return write_msccl_xml(subject.proven, settings);
}

std::string write_mscclpp(const PictureSubject& subject, const Settings& settings) {
  return write_plan(subject.proven, settings);
}

template <AlgorithmDialect dialect>
std::string write_algorithm(const PictureSubject& subject, const Settings&) {
  return format_json(algorithm_to_json(subject.proven, dialect));
}

template <std::string (*draw)(const PictureSubject&)>
std::string write_picture(const PictureSubject& subject, const Settings&) {
  return draw(subject);
}

const std::vector<Format>& formats() {
  static const std::vector<Format> all = {{"json", write_json},
                                          {kMscclFormat, write_xml},
                                          {kPlanFormat, write_mscclpp},
                                          {"msccl-json", write_algorithm<AlgorithmDialect::msccl>},
                                          {"taccl-json", write_algorithm<AlgorithmDialect::taccl>},
                                          {"trace", write_picture<trace_json>},
                                          {"svg", write_picture<svg_picture>},
                                          {"html", write_picture<html_page>}};
  return all;
}

/// The rounds that a run's schedule was made in; none for other engines and for single files.
std::vector<RoundSpan> rounds_of(const std::filesystem::path& path) {
  if (!std::filesystem::is_directory(path / "rounds")) return {};
  std::vector<RoundSpan> spans;
  for (const RoundRecord& round :
       read_round_files(path, digest_of(read_text_file(path / "problem.json"))).rounds) {
    spans.push_back({round.begin_us, round.end_us});
  }
  return spans;
}

std::vector<std::string> format_names() {
  std::vector<std::string> names;
  for (const Format& format : formats()) names.push_back(format.name);
  return names;
}

std::vector<OptionGroup> export_option_groups() {
  std::vector<OptionGroup> groups = {
      {"Input", {{"path", "PATH", "", "a schedule (FILE.h5, FILE.json) or the folder of a run"}}},
      {"Output",
       {{"format", "NAME", formats().front().name, join(format_names())},
        {"output", "FILE", "", "file to write; replaced if it exists"}}}};
  for (OptionGroup& group : program_options()) groups.push_back(std::move(group));
  return groups;
}

std::string run_export(const Settings& settings) {
  const std::string& name = settings.text("format");
  const auto format =
      std::find_if(formats().begin(), formats().end(), [&](const Format& f) { return f.name == name; });
  if (format == formats().end()) {
    throw Error(ExitCode::usage, fmt::format("--format is '{}'; known are: {}", name, join(format_names())));
  }
  const std::string& path = settings.text("path");
  const std::string& output = settings.text("output");
  const ProvenSchedule proven = read_schedule(path);
  write_text_file(output, format->write({proven, rounds_of(path)}, settings));
  return fmt::format("wrote {}\n", output);
}

}  // namespace

Command export_command() {
  return {
      .name = "export",
      .arguments = "PATH --format NAME --output FILE",
      .summary = "write a schedule in another form",
      .positional = "path",
      .notes =
          "json       the format rondo-schedule\n"
          "msccl-xml  for the MSCCL executors, checked as by rondo check-xml; a schedule beyond a cap of "
          "the executor\n"
          "           is refused with the cap's name (exit code 69)\n"
          "mscclpp    an execution plan of MSCCL++ (JSON), checked as by rondo check-plan; likewise refused\n"
          "msccl-json  steps and sends as msccl-tools reads them (msccl ncclize); taccl-json the same for "
          "TACCL\n"
          "trace      for Perfetto (ui.perfetto.dev) and chrome://tracing: a track a link and a GPU\n"
          "svg        a picture: the loaded fabric, the timeline of the links, their utilisation\n"
          "html       one page that works offline: the same, with a timeline that zooms and the path of each "
          "chunk\n\n"
          "Examples:\n"
          "  rondo export runs/a --format json --output schedule.json\n"
          "  rondo export runs/a --format msccl-xml --output allgather.xml --instances 2\n"
          "  rondo export runs/a --format mscclpp --output plan.json --gpus-per-node 8\n"
          "  rondo export runs/a --format html --output schedule.html\n",
      .options = export_option_groups,
      .run = on_root_alone(run_export)};
}

}  // namespace rondo::cli
