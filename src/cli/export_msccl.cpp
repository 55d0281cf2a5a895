#include "export_msccl.hpp"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "check_xml.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/nearest.hpp"
#include "rondo/core/subfabric.hpp"
#include "rondo/core/units.hpp"
#include "rondo/core/verify.hpp"
#include "rondo/lowering/lowering.hpp"
#include "rondo/msccl/xml.hpp"

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

}  // namespace

OptionGroup msccl_options() {
  OptionGroup group{
      "MSCCL XML (--format msccl-xml)",
      {{"executor", "NAME", "msccl", executor_names() + ": whose spelling and caps"},
       {"placement", "NAME", kOutOfPlace,
        fmt::format("{}, or {} where input and output are one buffer (allgather, broadcast, allreduce, "
                    "reduce_scatter, reduce)",
                    kOutOfPlace, kInPlace)},
       {"redop", "NAME", "sum", "sum, prod, max, min: what a collective that combines makes of its inputs"},
       {"instances", "N", "1", "split every chunk into N, each on threadblocks and channels of its own"},
       {"protocol", "NAME", "Simple", "Simple, LL, LL128"},
       {"max-peers", "N", "", "GPUs that a GPU exchanges data with; the others are reached over relays"},
       {"max-steps", "N", "",
        "steps of a threadblock, where less than the executor takes; a connection with more goes over "
        "several channels"},
       {"name", "TEXT", "", "of the program; default: made from collective, size and fabric"},
       {"min-bytes", "SIZE", "0", "smallest message that the executor uses it for"},
       {"max-bytes", "SIZE", "1099511627776", "largest; 0: no limit, which old executors do not know"}}};
  for (Option& option : group.options) option.why_ignored = why_msccl_ignored;
  return group;
}

std::string write_msccl_xml(const ProvenSchedule& proven, const Settings& settings) {
  return write_msccl_xml(proven, lowering_options(settings));
}

std::string write_msccl_xml(const ProvenSchedule& whole, const LoweringOptions& options) {
  verify(whole);
  // A group without relays is a communicator of its own.
  std::optional<ProvenSchedule> inside;
  if (whole.demand.forbids_relays()) inside = inside_group(whole);
  const ProvenSchedule& proven = inside ? *inside : whole;
  const msccl::Program program = lower(proven, options);
  std::string text = msccl::write_xml(program);
  // Read back, so that what is checked is what is written.
  const xmlcheck::CheckResult result = xmlcheck::check(
      msccl::parse_xml(text), {.executor = options.executor,
                               .demand = program.coll == Collective::custom ? &proven.demand : nullptr});
  if (!result.valid()) {
    throw Error(ExitCode::internal, "the program made from the schedule is wrong:\n" + describe(result));
  }
  return text;
}

}  // namespace rondo::cli
