#include <fmt/format.h>

#include "command.hpp"
#include "findings.hpp"
#include "rondo/core/error.hpp"
#include "rondo/io/read_as.hpp"
#include "rondo/mscclpp/check.hpp"
#include "rondo/mscclpp/plan_files.hpp"

namespace rondo::cli {
namespace {

constexpr const char* kCaps = "caps";
constexpr const char* kNoCaps = "none";

std::vector<OptionGroup> check_plan_option_groups() {
  return {{"Input", {{"path", "FILE", "", "an execution plan of MSCCL++ (JSON), of any producer"}}},
          {"Checks",
           {{kCaps, "NAME", "mscclpp", "mscclpp: what its executor takes at most; none"},
            {"max-findings", "N", "20", "findings to list"}}}};
}

std::string summary(const mscclpp::Plan& plan, const mscclpp::CheckResult& result) {
  std::size_t tbs = 0, ops = 0, channels = 0, semaphores = 0;
  for (const mscclpp::Gpu& gpu : plan.gpus) {
    tbs += gpu.tbs.size();
    channels += gpu.peers[0].size() + gpu.peers[1].size() + gpu.groups.size();
    semaphores += gpu.semaphores.size();
    for (const mscclpp::ThreadBlock& tb : gpu.tbs) {
      ops += tb.ops.size();
      for (const mscclpp::Op& op : tb.ops) ops += op.ops.size();
    }
  }
  std::string text = fmt::format(
      "valid: {} {} on {} GPUs, {} ends of channels, {} semaphores, {} threadblocks, {} operations",
      plan.collective, plan.in_place ? "in place" : "out of place", plan.num_gpus(), channels, semaphores,
      tbs, ops);
  if (result.root) text += fmt::format(", root {}", *result.root);
  if (!result.knows_result) text += "; what it is to do is not known";
  return text + "\n";
}

std::string run_check_plan(const Settings& settings) {
  const std::filesystem::path path = settings.text("path");
  const std::string& caps = settings.text(kCaps);
  if (caps != "mscclpp" && caps != kNoCaps)
    throw Error(ExitCode::usage, fmt::format("--caps is '{}'; known are: mscclpp, {}", caps, kNoCaps));
  const auto most = static_cast<std::size_t>(settings.integer("max-findings", 1, kMostFindings));
  const mscclpp::Plan plan = read_as(path, [](const Json& json) { return mscclpp::plan_from_json(json); });
  const mscclpp::CheckResult result =
      naming_file(path, [&] { return mscclpp::check(plan, caps != kNoCaps, most); });
  if (!result.valid())
    throw Error(ExitCode::bad_data, fmt::format("{}: {}", path.string(), describe_findings(result)));
  return summary(plan, result);
}

}  // namespace

Command check_plan_command() {
  return {.name = "check-plan",
          .arguments = "FILE",
          .summary = "check an execution plan of MSCCL++: structure, pairing, deadlocks, races, result, caps",
          .positional = "path",
          .notes =
              "Exit code 0 when all of it holds; 65 with gpu, tb and op of what does not. Pipelines are "
              "checked at "
              "two\n"
              "pieces a chunk.\n\n"
              "Examples:\n"
              "  rondo check-plan plan.json\n"
              "  rondo check-plan plan.json --caps none\n",
          .options = check_plan_option_groups,
          .run = on_root_alone(run_check_plan)};
}

}  // namespace rondo::cli
