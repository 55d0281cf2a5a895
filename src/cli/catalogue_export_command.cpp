#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "catalogue_options.hpp"
#include "command.hpp"
#include "export_msccl.hpp"
#include "fabrics.hpp"
#include "features.hpp"
#include "program_set.hpp"
#include "rondo/core/error.hpp"
#include "rondo/io/files.hpp"
#include "rondo/msccl/xml.hpp"
#include "rondo/mscclpp/plan_files.hpp"
#include "tuner_table.hpp"

namespace rondo::cli {
namespace {

using catalogue::Folder;
using catalogue::Series;
using catalogue::Table;

constexpr const char* kTuner = "nccl-tuner";
constexpr const char* kFeatures = "features";

std::string why_program_idle(const Settings& settings) {
  const std::string& format = settings.text("format");
  if (format == kMscclFormat || format == kPlanFormat) return "";
  return fmt::format("--format {} has no use for it; leave it out", format);
}

std::string why_msccl_idle(const Settings& settings) {
  return settings.text("format") == kMscclFormat ? "" : "it is for --format msccl-xml; leave it out";
}

std::vector<OptionGroup> export_groups() {
  return {
      {"Input", {catalogue_option()}},
      fabric_of_catalogue(),
      {"Output",
       {{"format", "NAME", kMscclFormat, "msccl-xml, mscclpp, nccl-tuner, features"},
        {"output", "PATH", "", "a folder for programs (empty or new), a file for nccl-tuner and features"}}},
      {"Programs",
       {{"placement", "NAME", "out-of-place", "out-of-place, or in-place where a collective has that",
         why_program_idle},
        {"instances", "N", "1", "split every chunk into N, each on channels of its own", why_program_idle},
        {"most", "N", "", "programs of a series; those that cost least are left out", why_program_idle},
        {"executor", "NAME", "msccl", "whose spelling and caps: msccl, msccl-executor-nccl", why_msccl_idle},
        {"protocol", "NAME", "Simple", "Simple, LL, LL128", why_msccl_idle}}}};
}

/// "allgather", "broadcast-root-2", "alltoall-gpus-0-7".
std::string file_stem(const Series& series) {
  std::string stem(to_string(series.collective));
  if (series.collective->has_root) stem += fmt::format("-root-{}", series.root.value);
  if (!series.group.empty()) {
    std::string gpus = to_string(series.group);
    std::ranges::replace(gpus, ',', '_');
    stem += "-gpus-" + gpus + (series.relays ? "" : "-alone");
  }
  return stem;
}

bool has_in_place(Collective collective) {
  return collective->input_in_output() || collective->output_in_input() ||
         collective == Collective::broadcast || collective == Collective::allreduce ||
         collective == Collective::reduce;
}

WriteProgram writer(const Settings& settings, const Series& series) {
  const std::string& placement = settings.text("placement");
  if (placement != "in-place" && placement != "out-of-place") {
    throw Error(ExitCode::usage,
                fmt::format("--placement is '{}'; it is out-of-place or in-place", placement));
  }
  const bool in_place = placement == "in-place" && has_in_place(series.collective);
  const int instances = static_cast<int>(settings.integer("instances", 1, 1024));
  if (settings.text("format") == kPlanFormat) {
    return [=](const ProvenSchedule& proven, const ByteRange& range) {
      return write_plan(proven, PlanOptions{.in_place = in_place,
                                            .instances = instances,
                                            .min_bytes = static_cast<std::uint64_t>(range.least),
                                            .max_bytes = static_cast<std::uint64_t>(range.most)});
    };
  }
  LoweringOptions options;
  options.executor = &msccl::find_executor(settings.text("executor"));
  options.protocol = msccl::parse_protocol(settings.text("protocol"));
  options.in_place = in_place;
  options.instances = instances;
  return [options](const ProvenSchedule& proven, const ByteRange& range) mutable {
    options.min_bytes = range.least;
    options.max_bytes = range.most;
    return write_msccl_xml(proven, options);
  };
}

/// What a file that was written says of its sizes. A plan may take fewer than it was asked for: chunks of 16
/// bytes at least, offsets of 32 bits.
ByteRange range_in(const std::filesystem::path& path, bool is_plan) {
  const std::string text = read_text_file(path);
  if (is_plan) {
    const mscclpp::Plan plan = mscclpp::plan_from_json(parse_json(text, path.string()));
    return {static_cast<std::int64_t>(plan.min_bytes), static_cast<std::int64_t>(plan.max_bytes)};
  }
  const msccl::Program program = msccl::parse_xml(text);
  return {program.min_bytes, program.max_bytes};
}

/// The sizes that no plan is for, in words. Throws Error(internal) where two are for one size.
std::vector<std::string> holes_of(const std::vector<ByteRange>& ranges, const std::string& what) {
  std::vector<std::string> holes;
  std::int64_t from = 0;
  for (const ByteRange& range : ranges) {
    if (range.least < from)
      throw Error(ExitCode::internal, fmt::format("two plans of {} are for {} bytes", what, range.least));
    if (range.least > from) holes.push_back(fmt::format("no plan for {} to {} bytes", from, range.least - 1));
    from = range.most + 1;
  }
  holes.push_back(fmt::format("no plan from {} bytes on", from));
  return holes;
}

/// Writes the programs of a series and checks them together, as they stand in their files.
Json export_series(const Folder& folder, const Table& table, const Settings& settings,
                   const std::filesystem::path& output, std::string& told) {
  const bool is_plan = settings.text("format") == kPlanFormat;
  std::optional<std::size_t> most;
  if (settings.has("most")) most = static_cast<std::size_t>(settings.integer("most", 1, 4096));
  const std::string stem = file_stem(table.series);
  const ProgramSet set = program_set(folder, table, most, writer(settings, table.series));
  Json programs = Json::array();
  std::vector<ByteRange> ranges;
  for (std::size_t i = 0; i < set.programs.size(); ++i) {
    const SetProgram& program = set.programs[i];
    const std::string name = fmt::format("{}-{:02}.{}", stem, i, is_plan ? "json" : "xml");
    write_text_file(output / name, program.text);
    ranges.push_back(range_in(output / name, is_plan));
    programs.push_back({{"file", name},
                        {"schedule", program.schedule},
                        {"min_bytes", ranges.back().least},
                        {"max_bytes", ranges.back().most}});
  }
  std::vector<std::string> remarks = set.remarks;
  if (is_plan) {
    std::ranges::move(holes_of(ranges, stem), std::back_inserter(remarks));
  } else {
    check_cover(ranges, stem);
  }
  told += fmt::format("{}: {} programs, {} to {} bytes; at most {:.2f} % later than the catalogue\n", stem,
                      ranges.size(), ranges.front().least, ranges.back().most, 100 * set.largest_loss);
  for (const std::string& remark : remarks) told += "  " + remark + "\n";
  return {{"series", stem},
          {"programs", std::move(programs)},
          {"largest_loss", set.largest_loss},
          {"remarks", remarks}};
}

std::string export_programs(const Folder& folder, const std::vector<Table>& tables,
                            const Settings& settings) {
  const std::filesystem::path output = settings.text("output");
  // What is gone or damaged is named before there is any file.
  for (const Table& table : tables) {
    for (const catalogue::Bin& bin : table.bins) folder.schedule(bin.schedule);
  }
  make_folder(output);
  if (!std::filesystem::is_empty(output)) {
    throw Error(ExitCode::cannot_create,
                output.string() + " is not empty: executors read all programs of a folder; give a new one");
  }
  std::string told;
  Json all = Json::array();
  std::string refusal;
  for (const Table& table : tables) {
    try {
      all.push_back(export_series(folder, table, settings, output, told));
    } catch (const Error& error) {
      if (error.code() != ExitCode::unavailable) throw;
      refusal = error.what();
      told += fmt::format("{}: none: {}\n", file_stem(table.series), error.what());
    }
  }
  if (all.empty()) throw Error(ExitCode::unavailable, refusal);
  // Beside the folder: executors take every file in it for a program.
  const std::filesystem::path list = output.string() + ".json";
  write_text_file(list, format_json({{"format", "rondo-program-set"}, {"version", 1}, {"series", all}}));
  return told + fmt::format("in {}; listed in {}\n", output.string(), list.string());
}

std::string run_catalogue_export(const Settings& settings) {
  const Folder folder = Folder::open(settings.text("path"));
  const std::string fabric = fabric_in(folder, settings);
  const std::string& format = settings.text("format");
  std::vector<Table> tables;
  for (const Series& series : folder.all_series()) {
    if (series.fabric != fabric) continue;
    Table table = folder.table(series);
    if (!table.bins.empty()) tables.push_back(std::move(table));
  }
  if (tables.empty())
    throw Error(ExitCode::no_input, folder.path().string() + " has no finished series of that fabric");
  if (format == kMscclFormat || format == kPlanFormat) return export_programs(folder, tables, settings);
  const auto topology = folder.fabric(fabric);
  if (format == kTuner) {
    write_text_file(settings.text("output"), tuner_table(topology, tables));
  } else if (format == kFeatures) {
    write_text_file(settings.text("output"), format_json(features_of(folder, *topology, tables)));
  } else {
    throw Error(ExitCode::usage,
                fmt::format("--format is '{}'; known are: msccl-xml, mscclpp, nccl-tuner, features", format));
  }
  return fmt::format("wrote {}\n", settings.text("output"));
}

}  // namespace

Command catalogue_export_command() {
  return {
      .name = "catalogue export",
      .arguments = "DIR --format NAME --output PATH",
      .summary = "programs for all sizes, or tables for tuners and agents",
      .positional = "path",
      .notes =
          "msccl-xml   a folder of MSCCL XML: for each series programs whose minBytes and maxBytes do not "
          "overlap and\n            cover all sizes up to 1 TiB, checked as they stand in the files; "
          "schedules beyond a cap of the\n            executor give way to the best that is not\n"
          "mscclpp     plans of MSCCL++ likewise, from the least to the greatest size that each can do\n"
          "nccl-tuner  CSV of NCCL's example tuner plugin: ring or tree, whichever ends first, protocol "
          "simple\n"
          "features    JSON of fabric and schedules for an agent: ratios, distances, crossing sizes, "
          "utilisation\n\n"
          "Example:\n"
          "  rondo catalogue export ndv2 --output ndv2-xml --placement in-place\n",
      .options = export_groups,
      .run = on_root_alone(run_catalogue_export)};
}

}  // namespace rondo::cli
