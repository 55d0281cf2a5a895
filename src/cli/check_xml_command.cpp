#include <fmt/format.h>

#include "command.hpp"
#include "findings.hpp"
#include "rondo/core/error.hpp"
#include "rondo/io/read_as.hpp"
#include "rondo/msccl/xml.hpp"
#include "rondo/xmlcheck/check.hpp"

namespace rondo::cli {
namespace {

constexpr const char* kNoExecutor = "none";

std::vector<OptionGroup> check_xml_option_groups() {
  const xmlcheck::CheckOptions defaults;
  return {{"Input",
           {{"path", "FILE", "", "MSCCL XML of any producer"},
            {"demand", "FILE", "", "rondo-demand: what a program with coll custom is to do"}}},
          {"Checks",
           {{"executor", "NAME", "msccl", executor_names() + ": whose spelling and caps; none"},
            {"fifo-depth", "N", std::to_string(defaults.fifo_depth),
             "sends that a connection holds before the receiver takes the first"},
            {"max-findings", "N", std::to_string(defaults.max_findings), "findings to list"}}}};
}

std::string why_demand_ignored(const msccl::Program& program) {
  if (program.coll == Collective::custom) return "";
  return fmt::format("the program's coll {} says what it is to do; leave it out", to_string(program.coll));
}

std::string summary(const msccl::Program& program, const xmlcheck::CheckResult& result) {
  std::size_t tbs = 0, steps = 0;
  for (const msccl::Gpu& gpu : program.gpus) {
    tbs += gpu.tbs.size();
    for (const msccl::ThreadBlock& tb : gpu.tbs) steps += tb.steps.size();
  }
  std::string placement = program.out_of_place ? "out of place" : "";
  if (program.in_place) placement += placement.empty() ? "in place" : " and in place";
  std::string text = fmt::format("valid: {} {} on {} GPUs, {} chunks, {} channels, {} threadblocks, {} steps",
                                 to_string(program.coll), placement, program.num_gpus(),
                                 program.chunks_per_loop, program.num_channels, tbs, steps);
  if (result.root) text += fmt::format(", root {}", *result.root);
  if (!result.knows_result) text += "; what it is to do is not known, --demand tells";
  return text + "\n";
}

std::string run_check_xml(const Settings& settings) {
  const std::filesystem::path path = settings.text("path");
  const msccl::XmlLimits limits;
  const std::string text = read_text_file(path, limits.bytes);
  const msccl::Program program = naming_file(path, [&] { return msccl::parse_xml(text, limits); });

  std::optional<Demand> demand;
  xmlcheck::CheckOptions options;
  const std::string& executor = settings.text("executor");
  if (executor != kNoExecutor) options.executor = &msccl::find_executor(executor);
  options.fifo_depth = static_cast<int>(settings.integer("fifo-depth", 1, 1'000'000));
  options.max_findings = static_cast<std::size_t>(settings.integer("max-findings", 1, kMostFindings));
  settings.refuse_ignored("demand", why_demand_ignored(program));
  if (settings.has("demand")) {
    const auto gpus = static_cast<std::size_t>(program.num_gpus());
    demand.emplace(
        read_as(settings.text("demand"), [&](const Json& json) { return demand_from_json(json, gpus, 1); }));
    options.demand = &*demand;
  }
  const xmlcheck::CheckResult result = naming_file(path, [&] { return xmlcheck::check(program, options); });
  if (!result.valid())
    throw Error(ExitCode::bad_data, fmt::format("{}: {}", path.string(), describe_findings(result)));
  return summary(program, result);
}

}  // namespace

std::string executor_names() {
  std::string names;
  for (const msccl::Executor& executor : msccl::executors()) {
    if (!names.empty()) names += ", ";
    names += executor.name;
  }
  return names;
}

Command check_xml_command() {
  return {.name = "check-xml",
          .arguments = "FILE",
          .summary = "check MSCCL XML: structure, pairing, deadlocks, races, result, an executor's caps",
          .positional = "path",
          .notes =
              "Exit code 0 when all of it holds; 65 with gpu, tb and step of what does not. A file that says "
              "both\n"
              "inplace and outofplace is checked for both.\n"
              "With coll custom, inputs and outputs hold the demand's contributions one after another.\n\n"
              "Examples:\n"
              "  rondo check-xml allgather.xml\n"
              "  rondo check-xml allgather.xml --executor msccl-executor-nccl\n",
          .options = check_xml_option_groups,
          .run = on_root_alone(run_check_xml)};
}

}  // namespace rondo::cli
