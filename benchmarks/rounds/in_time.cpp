// auto --time-limit with rounds in windows and without them (--round-work 0): AllGather on ten fabrics of 8
// to 128 GPUs, at a size at which auto leaves a gap on most.

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "benchmarks.hpp"
#include "case_runner.hpp"

namespace rondo::benchmarks::in_time {
namespace {

using Json = nlohmann::ordered_json;

/// Added to gaps, so that those of 0 have a geometric mean.
constexpr double kLeastGap = 1e-4;

const std::vector<std::vector<std::string>>& fabrics() {
  static const std::vector<std::vector<std::string>> all{
      {"rails:boxes=2"},
      {"rails:boxes=4"},
      {"rails:boxes=8"},
      {"rails:boxes=16"},
      {"rails:boxes=4,rails=2"},
      {"star:chassis=4,intra=ndv2,uplinks=2", "--degrade", "0.05:0.5"},
      {"torus:dims=8x8", "--degrade", "0.05:0.5..0.9"},
      {"amd-1"},
      {"amd-2"},
      {"ndv2-4"}};
  return all;
}

std::string name_of(const std::vector<std::string>& fabric) {
  std::string name;
  for (const std::string& word : fabric) name += (name.empty() ? "" : " ") + word;
  return name;
}

CaseResult solved(const BenchmarkOptions& options, const std::vector<std::string>& fabric, bool with_rounds) {
  std::vector<std::string> arguments{"--collective", "allgather",
                                     "--size",       options.own.at("--size"),
                                     "--time-limit", options.own.at("--seconds"),
                                     "--topology"};
  arguments.insert(arguments.end(), fabric.begin(), fabric.end());
  if (!with_rounds) arguments.insert(arguments.end(), {"--round-work", "0"});
  return solve_case(options.rondo, options.ranks, arguments);
}

int run(const BenchmarkOptions& options) {
  Json rows = Json::array();
  bool good = true;
  double logs = 0;
  std::printf("%-56s %12s %12s %10s %10s %7s\n", "fabric", "without us", "with us", "without %", "with %",
              "rounds");
  for (const auto& fabric : fabrics()) {
    const std::string name = name_of(fabric);
    if (name.find(options.own.at("--only")) == std::string::npos) continue;
    const CaseResult without = solved(options, fabric, false);
    const CaseResult with = solved(options, fabric, true);
    const std::string failure = without.failure() + with.failure();
    good = good && failure.empty();
    rows.push_back({{"case", name}, {"size", options.own.at("--size")}, {"ranks", options.ranks}});
    if (!failure.empty()) {
      std::printf("%-56s failed: %s\n", name.c_str(), failure.c_str());
      rows.back()["failed"] = failure;
      continue;
    }
    const double before_us = without.report["finish_us"].get<double>();
    const double before = without.report["gap"].get<double>();
    const double after = with.report["gap"].get<double>();
    rows.back().update({{"without_us", before_us},
                        {"gap_without", before},
                        {"ratio", (after + kLeastGap) / (before + kLeastGap)},
                        {"report", with.report}});
    logs += std::log(rows.back()["ratio"].get<double>());
    std::printf("%-56s %12.4f %12.4f %10.4f %10.4f %7.0f\n", name.c_str(), before_us,
                with.report["finish_us"].get<double>(), 100 * before, 100 * after,
                with.report["metrics"].value("rounds", 0.0));
    std::fflush(stdout);
    save_results(options, rows);
  }
  const double mean = std::exp(logs / static_cast<double>(rows.size()));
  std::printf("geometric mean of (gap + %g %%) with rounds over that without: %.3f\n", 100 * kLeastGap, mean);
  write_results(options, rows, {{"mean_ratio", mean}});
  return good ? 0 : 1;
}

}  // namespace

int benchmark(int argc, char** argv) {
  return run(parse_options(argc, argv, "in_time", {{"--only", ""}, {"--size", "1MB"}, {"--seconds", "60"}}));
}

}  // namespace rondo::benchmarks::in_time
