#pragma once

#include <fmt/format.h>

#include <string>

/// What the commands share that check programs and plans, or name those that run them.
namespace rondo::cli {

/// The most that may be asked for.
constexpr int kMostFindings = 1'000'000;

/// "msccl, msccl-executor-nccl"
std::string executor_names();

/// The findings of either check, a line each.
template <class CheckResult>
std::string describe_findings(const CheckResult& result) {
  std::string text = fmt::format("{} finding{}", result.num_findings, result.num_findings == 1 ? "" : "s");
  for (const auto& finding : result.findings) text += fmt::format("\n  {}: {}", finding.where, finding.what);
  if (result.findings.size() < result.num_findings)
    text += fmt::format("\n  and {} more", result.num_findings - result.findings.size());
  return text;
}

}  // namespace rondo::cli
