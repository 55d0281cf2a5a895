// What it costs that engine rounds survives: the same run with a file for every round, each reserved,
// written, read back and fsynced, and with `--checkpoint-every never`, in turn.

#include <cstdio>
#include <string>
#include <vector>

#include "benchmarks.hpp"
#include "case_runner.hpp"

namespace rondo::benchmarks::durability {
namespace {

using Json = nlohmann::ordered_json;

/// In seconds.
struct Runs {
  std::vector<double> wall_s;      ///< of the whole command
  std::vector<double> reported_s;  ///< on writing, reading back and fsync, as its report says
};

Json medians_of(const Runs& with, const Runs& without) {
  const double with_s = median(with.wall_s);
  const double without_s = median(without.wall_s);
  const double reported_s = median(with.reported_s);
  std::printf(
      "\nmedians of %zu runs: command %.3f s with, %.3f s without: %+.2f %%; reported by the runs %.3f s: "
      "%.2f %%\n",
      with.wall_s.size(), with_s, without_s, 100 * (with_s / without_s - 1), reported_s,
      100 * reported_s / with_s);
  return {{"with_s", with_s},
          {"without_s", without_s},
          {"cost_by_comparison", with_s / without_s - 1},
          {"reported_s", reported_s},
          {"cost_as_reported", reported_s / with_s}};
}

}  // namespace

int benchmark(int argc, char** argv) {
  const BenchmarkOptions options =
      parse_options(argc, argv, "durability",
                    {{"--fabric", "star:chassis=16,intra=ndv2"}, {"--repeat", "5"}, {"--timeout", "3600"}});
  const int repeat = options.number("--repeat", 1);
  const int timeout_s = options.number("--timeout", 1);
  const std::string& fabric = options.own.at("--fabric");

  std::printf("%s, AllGather of 1 GB, engine rounds, decomposed by ncflow, %d ranks\n\n", fabric.c_str(),
              options.ranks);
  std::printf("%8s %12s %12s %12s %10s\n", "rounds", "command s", "reported s", "MB written", "finish us");
  Json rows = Json::array();
  Runs with;
  Runs without;
  for (int i = 0; i < repeat; ++i) {
    for (const bool kept : {true, false}) {
      const CaseResult r = solve_case(
          options.rondo, options.ranks,
          {"--topology", fabric, "--collective", "allgather", "--size", "1GB", "--engine", "rounds",
           "--start", "list", "--decompose", "ncflow", "--checkpoint-every", kept ? "60" : "never"},
          timeout_s);
      if (const std::string failure = r.failure(); !failure.empty()) {
        std::printf("failed: %s after %.1f s\n", failure.c_str(), r.wall_s);
        return 1;
      }
      const double reported_s = r.report["durability"]["seconds"];
      std::printf("%8s %12.3f %12.3f %12.1f %10.1f\n", kept ? "kept" : "not kept", r.wall_s, reported_s,
                  static_cast<double>(r.round_files_bytes) / 1e6, r.report["finish_us"].get<double>());
      std::fflush(stdout);
      (kept ? with : without).wall_s.push_back(r.wall_s);
      (kept ? with : without).reported_s.push_back(reported_s);
      rows.push_back({{"rounds_kept", kept},
                      {"wall_s", r.wall_s},
                      {"reported_s", reported_s},
                      {"round_files_bytes", r.round_files_bytes},
                      {"wall_parts_s", r.report["wall_parts_s"]},
                      {"finish_us", r.report["finish_us"]}});
      save_results(options, rows, {{"fabric", fabric}});
    }
  }
  write_results(options, rows, {{"fabric", fabric}, {"medians", medians_of(with, without)}});
  return 0;
}

}  // namespace rondo::benchmarks::durability
