#include "export_msccl.hpp"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "findings.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/nearest.hpp"
#include "rondo/core/subfabric.hpp"
#include "rondo/core/units.hpp"
#include "rondo/core/verify.hpp"
#include "rondo/lowering/lowering.hpp"
#include "rondo/msccl/xml.hpp"
#include "rondo/mscclpp/plan_files.hpp"
#include "rondo/xmlcheck/check.hpp"

namespace rondo::cli {
namespace {

constexpr const char* kInPlace = "in-place";
constexpr const char* kOutOfPlace = "out-of-place";

bool in_place(const Settings& settings) {
  const std::string& placement = settings.text("placement");
  if (placement != kInPlace && placement != kOutOfPlace) {
    throw Error(ExitCode::usage,
                fmt::format("--placement is '{}'; known are: {}, {}", placement, kOutOfPlace, kInPlace));
  }
  return placement == kInPlace;
}

bool switch_copies(const Settings& settings) {
  const std::string& word = settings.text("switch-copies");
  if (word == "yes" || word == "no") return word == "yes";
  throw Error(ExitCode::usage, fmt::format("--switch-copies is '{}'; give yes or no", word));
}

/// "0" or a size.
std::int64_t byte_limit(const Settings& settings, const std::string& name) {
  const std::string& text = settings.text(name);
  return text == "0" ? 0 : static_cast<std::int64_t>(std::llround(parse_size(text)));
}

std::optional<int> limit(const Settings& settings, const std::string& name) {
  if (!settings.has(name)) return std::nullopt;
  return static_cast<int>(settings.integer(name, 1, 1'000'000));
}

LoweringOptions lowering_options(const Settings& settings) {
  LoweringOptions options;
  options.executor = &msccl::find_executor(settings.text("executor"));
  options.protocol = msccl::parse_protocol(settings.text("protocol"));
  options.in_place = in_place(settings);
  options.instances = static_cast<int>(settings.integer("instances", 1, 1024));
  options.max_peers = limit(settings, "max-peers");
  options.max_steps = limit(settings, "max-steps");
  options.redop = settings.text("redop");
  if (settings.has("name")) options.name = settings.text("name");
  options.min_bytes = byte_limit(settings, "min-bytes");
  options.max_bytes = byte_limit(settings, "max-bytes");
  return options;
}

std::string why_msccl_ignored(const Settings& settings) {
  const std::string& format = settings.text("format");
  if (format == kMscclFormat) return "";
  return fmt::format("--format {} has no use for it; give --format {}, or leave it out", format,
                     kMscclFormat);
}

std::string why_plan_ignored(const Settings& settings) {
  const std::string& format = settings.text("format");
  if (format == kPlanFormat) return "";
  return fmt::format("--format {} has no use for it; give --format {}, or leave it out", format, kPlanFormat);
}

std::string why_program_ignored(const Settings& settings) {
  const std::string& format = settings.text("format");
  if (format == kMscclFormat || format == kPlanFormat) return "";
  return fmt::format("--format {} has no use for it; give --format {} or {}, or leave it out", format,
                     kMscclFormat, kPlanFormat);
}

/// A group without relays is a communicator of its own.
ProvenSchedule for_programs(const ProvenSchedule& whole) {
  verify(whole);
  return whole.demand.forbids_relays() ? inside_group(whole) : whole;
}

}  // namespace

std::vector<OptionGroup> program_options() {
  OptionGroup both{
      "MSCCL XML and MSCCL++ (--format msccl-xml, mscclpp)",
      {{"placement", "NAME", kOutOfPlace,
        fmt::format("{}, or {} where input and output are one buffer (allgather, broadcast, allreduce, "
                    "reduce_scatter, reduce)",
                    kOutOfPlace, kInPlace)},
       {"instances", "N", "1", "split every chunk into N, each on threadblocks and channels of its own"},
       {"max-peers", "N", "", "GPUs that a GPU exchanges data with; the others are reached over relays"},
       {"name", "TEXT", "", "of the program; default: made from collective, size and fabric"},
       {"min-bytes", "SIZE", "0", "smallest message that the executor uses it for"},
       {"max-bytes", "SIZE", "1099511627776", "largest; 0: no limit, which old executors do not know"}}};
  for (Option& option : both.options) option.why_ignored = why_program_ignored;
  OptionGroup xml{
      "MSCCL XML (--format msccl-xml)",
      {{"executor", "NAME", "msccl", executor_names() + ": whose spelling and caps"},
       {"redop", "NAME", "sum", "sum, prod, max, min: what a collective that combines makes of its inputs"},
       {"protocol", "NAME", "Simple", "Simple, LL, LL128"},
       {"max-steps", "N", "",
        "steps of a threadblock, where less than the executor takes; a connection with more goes over "
        "several channels"}}};
  for (Option& option : xml.options) option.why_ignored = why_msccl_ignored;
  OptionGroup plan{
      "MSCCL++ (--format mscclpp)",
      {{"gpus-per-node", "N", "",
        "GPUs that reach one another's memory (memory channels); others use port channels. Default: "
        "those of one chassis of the fabric"},
       {"switch-copies", "yes|no", "yes",
        "whether what a switch of a node copies is one store at all its receivers (a switch channel: NVLink "
        "SHARP, H100 and later), where the places allow it; no: one put each"}}};
  for (Option& option : plan.options) option.why_ignored = why_plan_ignored;
  return {both, xml, plan};
}

std::string write_msccl_xml(const ProvenSchedule& proven, const Settings& settings) {
  return write_msccl_xml(proven, lowering_options(settings));
}

std::string write_msccl_xml(const ProvenSchedule& whole, const LoweringOptions& options) {
  const ProvenSchedule proven = for_programs(whole);
  const msccl::Program program = lower(proven, options);
  std::string text = msccl::write_xml(program);
  // Read back, so that what is checked is what is written.
  const xmlcheck::CheckResult result = xmlcheck::check(
      msccl::parse_xml(text), {.executor = options.executor,
                               .demand = program.coll == Collective::custom ? &proven.demand : nullptr});
  if (!result.valid()) {
    throw Error(ExitCode::internal,
                "the program made from the schedule is wrong:\n" + describe_findings(result));
  }
  return text;
}

std::string write_plan(const ProvenSchedule& proven, const Settings& settings) {
  const std::int64_t most = byte_limit(settings, "max-bytes");
  return write_plan(proven, {.in_place = in_place(settings),
                             .instances = static_cast<int>(settings.integer("instances", 1, 1024)),
                             .max_peers = limit(settings, "max-peers"),
                             .name = settings.has("name") ? settings.text("name") : "",
                             .min_bytes = static_cast<std::uint64_t>(byte_limit(settings, "min-bytes")),
                             .max_bytes = most == 0 ? mscclpp::kNoLimit : static_cast<std::uint64_t>(most),
                             .gpus_per_node = limit(settings, "gpus-per-node").value_or(0),
                             .switch_copies = switch_copies(settings)});
}

std::string write_plan(const ProvenSchedule& proven, const PlanOptions& options) {
  const mscclpp::Plan plan = lower_to_plan(for_programs(proven), options);
  const Json json = mscclpp::plan_to_json(plan);
  // Read back, so that what was checked is what is written.
  if (mscclpp::plan_from_json(json) != plan)
    throw Error(ExitCode::internal, "the plan does not read back as it was written");
  return format_json(json);
}

}  // namespace rondo::cli
