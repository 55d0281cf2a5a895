// Memory of a rank: AllGather on 4,096 GPUs on 1, 2, 4, ... ranks, less what a process takes that has nothing
// to do.

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "benchmarks.hpp"
#include "case_runner.hpp"

namespace rondo::benchmarks::memory {
namespace {

using Json = nlohmann::ordered_json;

const std::vector<std::string> kFabrics{"torus:dims=64x64", "star:chassis=512,intra=ndv2", "rails:boxes=512"};

double peak_MB(const CaseResult& result) {
  return result.report.at("peak_rss_bytes").at("max").get<double>() / 1e6;
}

/// On a fabric that needs nothing.
double idle_MB(const BenchmarkOptions& options, int ranks) {
  const CaseResult r = solve_case(
      options.rondo, ranks, {"--topology", "ring:gpus=2", "--collective", "allgather", "--size", "1MB"});
  return r.failure().empty() ? peak_MB(r) : 0;
}

int run(const BenchmarkOptions& options) {
  const int timeout_s = options.number("--timeout", 1);
  const int most_ranks = options.number("--most-ranks", 1);
  Json rows = Json::array();
  bool good = true;
  std::printf("%-28s %5s %9s %9s %10s %9s %8s  %s\n", "fabric", "ranks", "sends", "peak MB", "of it idle",
              "exponent", "CPU s", "digest");
  for (const std::string& fabric : kFabrics) {
    if (fabric.find(options.own.at("--only")) == std::string::npos) continue;
    double on_one_MB = 0;
    std::string digest;
    for (int ranks = 1; ranks <= most_ranks; ranks *= 2) {
      const CaseResult r = solve_case(options.rondo, ranks,
                                      {"--topology", fabric, "--collective", "allgather", "--size", "1GB",
                                       "--chunks", "1", "--gap", "2%"},
                                      timeout_s);
      if (!r.failure().empty()) {
        std::printf("%-28s %5d %s\n", fabric.c_str(), ranks, r.failure().c_str());
        rows.push_back({{"fabric", fabric}, {"ranks", ranks}, {"failed", r.failure()}});
        good = false;
        continue;
      }
      const double idle = idle_MB(options, ranks);
      const double own = peak_MB(r) - idle;
      if (ranks == 1) on_one_MB = own;
      const double exponent = ranks > 1 && on_one_MB > 0 ? std::log(on_one_MB / own) / std::log(ranks) : 0;
      const auto found = r.report.at("schedule_digest").get<std::string>();
      good = good && (digest.empty() || digest == found);
      digest = found;
      const auto sends = r.report.at("sends").get<double>();
      std::printf("%-28s %5d %9.0f %9.0f %10.0f %9.2f %8.1f  %s\n", fabric.c_str(), ranks, sends, peak_MB(r),
                  idle, exponent, r.cpu_s, found.c_str());
      std::fflush(stdout);
      rows.push_back({{"fabric", fabric},
                      {"ranks", ranks},
                      {"sends", sends},
                      {"finish_us", r.report.at("finish_us")},
                      {"peak_MB", peak_MB(r)},
                      {"idle_MB", idle},
                      {"exponent", exponent},
                      {"cpu_s", r.cpu_s},
                      {"digest", found}});
      save_results(options, rows);
    }
  }
  write_results(options, rows);
  return good ? 0 : 1;
}

}  // namespace

int benchmark(int argc, char** argv) {
  return run(
      parse_options(argc, argv, "memory", {{"--only", ""}, {"--most-ranks", "8"}, {"--timeout", "3600"}}));
}

}  // namespace rondo::benchmarks::memory
